//! How a session parses texts of statements, to run or to prepare them.

use std::sync::Arc;

use errors::{Result, bail};
use programs::{parse_error, parse_options_of};
use syntax::ParseOptions;
use syntax::ast::Statement;
use types::SqlMode;
use variables::Settings;

use crate::prepared_texts::{PreparedExecution, PreparedText};
use crate::session::Session;
use statements::placeholders::is_blank;
use statements::preparable::{is_preparable, takes_parameters};

/// Maximum number of parameters of a statement.
const PARAMETERS_MAX: usize = 65_535;

/// The settings by which a session parses texts.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    settings: &'a Settings,
    /// The current schema.
    schema: Option<&'a Arc<str>>,
    /// The client requested it when it connected.
    ignore_space: bool,
}

impl Session {
    /// The present settings for parsing texts.
    pub(crate) fn reading(&self) -> Reading<'_> {
        let schema = self.services.database.as_ref();
        Reading { settings: &self.settings, schema, ignore_space: self.client.ignore_space }
    }
}

impl Reading<'_> {
    /// Options of the parser.
    pub(crate) fn options(&self) -> ParseOptions<'static> {
        parse_options_of(self.settings.sql_mode, self.ignore_space)
    }

    /// Those for a text that runs at once, where a `?` stands for nothing.
    pub(crate) fn text_options(&self) -> ParseOptions<'static> {
        ParseOptions { placeholders: false, ..self.options() }
    }

    /// Parses a text that is to be prepared.
    pub(crate) fn prepare(&self, sql: &[u8]) -> Result<(PreparedText, Statement)> {
        // The end of a statement may be repeated; the parser handles a comment after it.
        let is_end = |byte: &u8| byte.is_ascii_whitespace() || *byte == b';';
        let length = sql.iter().rposition(|byte| !is_end(byte)).map_or(0, |last| last + 1);
        let sql = &sql[..length];
        if self.settings.charset_client.is_utf8() {
            self.prepare_decoded(sql.into())
        } else {
            self.prepare_decoded(self.settings.charset_client.decode(sql).bytes.into())
        }
    }

    /// The same for a text in UTF-8 without the end of its statement.
    pub(crate) fn prepare_decoded(&self, source: Box<[u8]>) -> Result<(PreparedText, Statement)> {
        let statement = self.parse(&source)?;
        if matches!(statement, Statement::Empty) && is_blank(&source) {
            bail!(EMPTY_QUERY);
        }
        if !is_preparable(&statement) {
            bail!(UNSUPPORTED_PS);
        }
        let options = self.options();
        let found = statements::placeholders::find(&source, options.no_backslash_escapes);
        let parameters = found.count;
        if parameters > PARAMETERS_MAX {
            bail!(PS_MANY_PARAM);
        }
        if parameters > 0 && matches!(statement, Statement::CreateView(_) | Statement::AlterView(_))
        {
            bail!(VIEW_SELECT_VARIABLE);
        }
        if parameters > 0 && !takes_parameters(&statement) {
            bail!(PARAMETER_OUTSIDE_DML);
        }
        let has_plan = match &statement {
            Statement::Query(query) => query.into.is_none(),
            Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Do(_) => true,
            _ => false,
        };
        let execution = match &statement {
            Statement::StartTransaction(_) | Statement::Commit(_) | Statement::Rollback(_) => {
                PreparedExecution::Kept(Box::new(statement.clone()))
            }
            statement if has_plan && !statements::hints::changes_surroundings(statement) => {
                PreparedExecution::Planned
            }
            _ => PreparedExecution::Read,
        };
        let (mode, schema) = (self.mode(), self.schema.cloned());
        let (parameters, row_counts) = (parameters as u32, found.row_counts.into());
        let text = PreparedText { source, mode, schema, parameters, row_counts, execution };
        Ok((text, statement))
    }

    /// The one statement of a text.
    pub(crate) fn parse(&self, source: &[u8]) -> Result<Statement> {
        let options = syntax::ParseOptions { multi_statements: false, ..self.options() };
        let _seen = sys::probes::parse(source);
        let parsed = syntax::parse_bytes(source, &options).map_err(|error| parse_error(&error))?;
        Ok(parsed.0)
    }

    /// The settings that decide how a text is parsed: equal texts are shared only under equal settings.
    pub(crate) fn mode(&self) -> u64 {
        let ignore_space = if self.ignore_space { SqlMode::IGNORE_SPACE.0 } else { 0 };
        let reading = SqlMode::ANSI_QUOTES.0
            | SqlMode::PIPES_AS_CONCAT.0
            | SqlMode::NO_BACKSLASH_ESCAPES.0
            | SqlMode::IGNORE_SPACE.0
            | SqlMode::HIGH_NOT_PRECEDENCE.0
            | SqlMode::REAL_AS_FLOAT.0;
        (self.settings.sql_mode.0 | ignore_space) & reading
    }
}
