//! Arguments of JSON functions: documents, paths, values.

use std::borrow::Cow;

use errors::{Error, ErrorCode, Result};
use plugin_api::{ArgInfo, kit};
use types::json::{self, JsonParseError, JsonRef};
use types::{DataType, JsonPath, JsonValue, SqlBytes, Value};

/// The bind-time properties of a call: its name, the types of its arguments, and its constant paths.
pub(crate) struct Call {
    pub(crate) name: &'static str,
    pub(crate) types: Vec<DataType>,
    paths: Vec<Option<JsonPath>>,
}

/// Whether a path may match several values.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Wildcards {
    Allowed,
    Refused,
}

impl Call {
    /// Constant paths at these positions are parsed now; wrong ones are left for the call to complain about.
    pub(crate) fn new(name: &'static str, args: &[ArgInfo], is_path: fn(usize) -> bool) -> Call {
        let path = |index: usize, arg: &ArgInfo| {
            let text = arg.constant.as_ref().filter(|value| is_path(index) && !value.is_null())?;
            JsonPath::parse(kit::bytes(text)).ok()
        };
        Call {
            name,
            types: args.iter().map(|arg| arg.ty.clone()).collect(),
            paths: args.iter().enumerate().map(|(index, arg)| path(index, arg)).collect(),
        }
    }

    /// The document in argument `index`; `None` for NULL.
    ///
    /// # Errors
    /// 3141 for malformed text, 3144 and 3146 for values that cannot be JSON.
    pub(crate) fn document(&self, args: &[Value], index: usize) -> Result<Option<SqlBytes>> {
        match &args[index] {
            Value::Null => Ok(None),
            Value::Json(document) => Ok(Some(document.clone())),
            Value::Bytes(text) if !self.types[index].is_binary() => {
                Ok(Some(self.parse(text, index)?.to_binary()))
            }
            Value::Bytes(_) => Err(Error::with(ErrorCode::INVALID_JSON_CHARSET, &[&"binary"])),
            _ => Err(Error::with(ErrorCode::INVALID_TYPE_FOR_JSON, &[&(index + 1), &self.name])),
        }
    }

    /// The value at the path in argument `path` of argument `index`, where that is text: builds only the requested part. `None`
    /// where it is not text, or the path needs the whole document.
    ///
    /// # Errors
    /// 3141, and those of `path`.
    pub(crate) fn in_text(
        &self,
        args: &[Value],
        index: usize,
        path: usize,
    ) -> Result<Option<Option<JsonValue>>> {
        let Value::Bytes(text) = &args[index] else { return Ok(None) };
        if self.types[index].is_binary() {
            return Ok(None);
        }
        // An error of the document comes before one of the path.
        let path = match self.path(args, path, Wildcards::Allowed) {
            Ok(Some(path)) => path,
            other => {
                json::check(text).map_err(|error| self.no_document(error, index))?;
                return other.map(|_| Some(None));
            }
        };
        let found = json::parse_at(text, &path).transpose();
        found.map_err(|error| self.no_document(error, index))
    }

    /// The same as a tree.
    pub(crate) fn tree(&self, args: &[Value], index: usize) -> Result<Option<JsonValue>> {
        match &args[index] {
            Value::Bytes(text) if !self.types[index].is_binary() => {
                Ok(Some(self.parse(text, index)?))
            }
            _ => Ok(self
                .document(args, index)?
                .map(|bytes| JsonValue::from_ref(JsonRef::new(&bytes)))),
        }
    }

    fn parse(&self, text: &[u8], index: usize) -> Result<JsonValue> {
        json::parse(text).map_err(|error| self.no_document(error, index))
    }

    fn no_document(&self, error: JsonParseError, index: usize) -> Error {
        if error.too_deep {
            return Error::with(ErrorCode::JSON_DOCUMENT_TOO_DEEP, &[]);
        }
        if error.name_too_long {
            return Error::with(ErrorCode::JSON_KEY_TOO_BIG, &[]);
        }
        let code = ErrorCode::INVALID_JSON_TEXT_IN_PARAM;
        Error::with(code, &[&(index + 1), &self.name, &error.message, &error.position])
    }

    /// The path in argument `index`; `None` for NULL.
    ///
    /// # Errors
    /// 3143 for malformed text, 3149 for wildcards that are not allowed.
    pub(crate) fn path(
        &self,
        args: &[Value],
        index: usize,
        wildcards: Wildcards,
    ) -> Result<Option<Cow<'_, JsonPath>>> {
        if args[index].is_null() {
            return Ok(None);
        }
        let path =
            match &self.paths[index] {
                Some(path) => Cow::Borrowed(path),
                None => {
                    let path = JsonPath::parse(kit::bytes(&args[index]));
                    Cow::Owned(path.map_err(|position| {
                        Error::with(ErrorCode::INVALID_JSON_PATH, &[&position])
                    })?)
                }
            };
        if wildcards == Wildcards::Refused && path.has_wildcard() {
            return Err(Error::with(ErrorCode::INVALID_JSON_PATH_WILDCARD, &[]));
        }
        Ok(Some(path))
    }

    /// The SQL value in argument `index` as JSON.
    pub(crate) fn value(&self, args: &[Value], index: usize) -> JsonValue {
        types::json_of_value(&args[index], &self.types[index])
    }

    /// Whether argument `index` is `all`; `None` for NULL.
    ///
    /// # Errors
    /// 3154 for anything but `one` and `all`.
    pub(crate) fn wants_all(&self, args: &[Value], index: usize) -> Result<Option<bool>> {
        if args[index].is_null() {
            return Ok(None);
        }
        match kit::text(&args[index]).to_ascii_lowercase().as_str() {
            "one" => Ok(Some(false)),
            "all" => Ok(Some(true)),
            _ => Err(Error::with(ErrorCode::JSON_BAD_ONE_OR_ALL_ARG, &[&self.name])),
        }
    }
}

/// No argument is a path.
pub(crate) fn no_paths(_: usize) -> bool {
    false
}

/// All arguments but the first are paths.
pub(crate) fn rest_are_paths(index: usize) -> bool {
    index > 0
}
