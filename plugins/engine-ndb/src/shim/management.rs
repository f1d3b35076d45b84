//! The management half: the configuration of the cluster, what nodes are told to do, and tables that are spread over new nodes.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::{null, null_mut};

use super::{Connection, Shim, c_text, no_error, outcome};
use crate::error::NdbError;

/// A value of the configuration, as the shim gives and takes it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawSetting {
    section: u32,
    kind: u32,
    ty: u32,
    key: u32,
    form: u32,
    unused: u32,
    number: u64,
    text: *const c_char,
}

const FORM_NUMBER: u32 = 1;
const FORM_TEXT: u32 = 2;
const FORM_WIDE: u32 = 4;

/// A value of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// 32 bits.
    Number(u32),
    /// 64 bits.
    Wide(u64),
    Text(String),
}

/// The values of the system, a node or a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    /// 1000 of the system, 2000 of a node, 3000 of a connection.
    pub(crate) kind: u32,
    /// As the configuration counts kinds of nodes and of connections.
    pub(crate) ty: u32,
    pub(crate) entries: Vec<(u32, Entry)>,
}

/// What nodes are told to do: the shim's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Restart = 0,
    /// Without what they have on disk.
    RestartInitial = 1,
    /// They end their work, and their processes wait for `Start`.
    Hold = 2,
    /// Their processes end.
    Stop = 3,
    Start = 4,
    Backup = 5,
    /// They become a node group.
    Group = 6,
    /// The group with this number is no more.
    Ungroup = 7,
}

/// Frees the configuration that was read.
struct Read {
    handle: *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
}

impl Drop for Read {
    fn drop(&mut self) {
        // SAFETY: it was read and is freed once.
        unsafe { (self.free)(self.handle) }
    }
}

fn entry(raw: &RawSetting) -> Entry {
    match raw.form {
        FORM_WIDE => Entry::Wide(raw.number),
        FORM_TEXT if !raw.text.is_null() => {
            // SAFETY: the shim gave a C string, which lives as long as the configuration that was read.
            let text = unsafe { CStr::from_ptr(raw.text) };
            Entry::Text(text.to_string_lossy().into_owned())
        }
        FORM_TEXT => Entry::Text(String::new()),
        _ => Entry::Number(raw.number as u32),
    }
}

impl Shim {
    /// The configuration of the cluster.
    pub(crate) fn configuration(&self, connectstring: &str) -> Result<Vec<Section>, NdbError> {
        let connectstring = c_text(connectstring);
        let (mut handle, mut settings, mut count) = (null_mut(), null(), 0);
        let mut error = no_error();
        // SAFETY: a C string, and places for results.
        let result = unsafe {
            (self.0.config_read)(
                connectstring.as_ptr(),
                &mut handle,
                &mut settings,
                &mut count,
                &mut error,
            )
        };
        outcome(result, &error)?;
        let _read = Read { handle, free: self.0.config_free };
        let mut sections: Vec<Section> = Vec::new();
        let mut last = None;
        for at in 0..count as usize {
            // SAFETY: the shim gave so many settings, which live until they are freed.
            let raw: RawSetting = unsafe { *settings.add(at) };
            if last != Some(raw.section) {
                last = Some(raw.section);
                sections.push(Section { kind: raw.kind, ty: raw.ty, entries: Vec::new() });
            }
            if let Some(section) = sections.last_mut() {
                section.entries.push((raw.key, entry(&raw)));
            }
        }
        Ok(sections)
    }

    /// Replaces the configuration; refused when it was changed since it was read.
    pub(crate) fn configure(
        &self,
        connectstring: &str,
        sections: &[Section],
    ) -> Result<(), NdbError> {
        let connectstring = c_text(connectstring);
        let mut texts: Vec<CString> = Vec::new();
        let mut raw = Vec::new();
        for (section, number) in sections.iter().zip(0..) {
            for (key, entry) in &section.entries {
                let (form, value, text) = match entry {
                    Entry::Number(value) => (FORM_NUMBER, u64::from(*value), null()),
                    Entry::Wide(value) => (FORM_WIDE, *value, null()),
                    Entry::Text(text) => {
                        texts.push(c_text(text));
                        (FORM_TEXT, 0, texts.last().map_or(null(), |text| text.as_ptr()))
                    }
                };
                raw.push(RawSetting {
                    section: number,
                    kind: section.kind,
                    ty: section.ty,
                    key: *key,
                    form,
                    unused: 0,
                    number: value,
                    text,
                });
            }
        }
        let mut error = no_error();
        // SAFETY: so many settings, whose texts live in `texts`.
        let result = unsafe {
            (self.0.config_write)(
                connectstring.as_ptr(),
                raw.as_ptr(),
                raw.len() as u32,
                &mut error,
            )
        };
        outcome(result, &error)
    }

    /// Tells nodes what to do. The result is the number of the backup or the node group.
    pub(crate) fn command(
        &self,
        connectstring: &str,
        command: Command,
        nodes: &[i32],
    ) -> Result<i32, NdbError> {
        let connectstring = c_text(connectstring);
        let (mut made, mut error) = (0, no_error());
        // SAFETY: a C string, so many nodes, and places for results.
        let result = unsafe {
            (self.0.command)(
                connectstring.as_ptr(),
                command as u32,
                nodes.as_ptr(),
                nodes.len() as u32,
                &mut made,
                &mut error,
            )
        };
        outcome(result, &error).map(|()| made)
    }
}

impl Connection {
    /// The names of the tables of this server's database in the cluster.
    pub(crate) fn table_names(&self) -> Result<Vec<String>, NdbError> {
        let mut names: Vec<u8> = Vec::new();
        loop {
            let (mut length, mut error) = (0, no_error());
            // SAFETY: the link is open, the buffer as large as said.
            let result = unsafe {
                (self.functions.table_names)(
                    self.handle,
                    names.as_mut_ptr().cast(),
                    names.len() as u64,
                    &mut length,
                    &mut error,
                )
            };
            outcome(result, &error)?;
            let is_all = length as usize <= names.len();
            names.resize(length as usize, 0);
            if is_all {
                break;
            }
        }
        let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    /// Spreads a table over all node groups.
    pub(crate) fn spread(&self, name: &str) -> Result<(), NdbError> {
        let (name, mut error) = (c_text(name), no_error());
        // SAFETY: the link is open, the name a C string.
        let result =
            unsafe { (self.functions.table_spread)(self.handle, name.as_ptr(), &mut error) };
        outcome(result, &error)
    }
}
