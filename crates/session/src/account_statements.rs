//! Statements about accounts as a session runs them: computed by the crate `accounts`, committed here.

use ::accounts::{AccountChange, AccountStatement, PasswordRules};
use errors::Result;
use plugin_api::{OkInfo, ResultSink};
use syntax::ast::{RoleChoice, Statement};

use crate::session::Session;
use statements::sink::send_rows;
use variables::as_u64;

impl Session {
    /// Runs a statement that changes accounts.
    pub(crate) fn run_account_statement(
        &mut self,
        statement: &Statement,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let change = self.account_statement(|accounts| accounts.run(statement))?;
        let AccountChange { edits, passwords, own_password, .. } = &change;
        if let Some(texts) = describe::account_statements(statement, edits) {
            crate::recording::log_instead(
                self,
                texts.into_iter().map(String::into_bytes).collect(),
            );
        }
        let commit = if edits.is_empty() { None } else { Some(self.commit_definitions(edits)?) };
        self.refresh_privileges();
        self.services.row_count = 0;
        if passwords.is_empty() {
            self.send_ok(sink, OkInfo { commit, ..OkInfo::default() })?;
        } else {
            let commit = self.commit_for_reply(commit)?;
            let state = OkInfo { commit, ..self.state_info() };
            let rows: Vec<_> = passwords.iter().map(describe::password_row).collect();
            send_rows(sink, &describe::password_columns(), &rows, &state)?;
        }
        self.server.logins.follow(&change);
        self.limits.must_change_password &= !own_password;
        Ok(())
    }

    /// SET ROLE.
    pub(crate) fn set_role(
        &mut self,
        choice: &RoleChoice,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        self.active_roles =
            self.account_statement(|accounts| accounts.roles_to_activate(choice))?;
        self.refresh_privileges();
        self.describe_roles();
        self.send_ok(sink, OkInfo::default())
    }

    /// Lends the facts about the session that statements about accounts need.
    fn account_statement<T>(
        &mut self,
        run: impl FnOnce(&mut AccountStatement<'_>) -> Result<T>,
    ) -> Result<T> {
        let globals = &self.server.globals;
        let narrow = |name: &str| u32::try_from(globals.integer(name)).unwrap_or(u32::MAX);
        let rules = PasswordRules {
            history: narrow("password_history"),
            reuse_days: narrow("password_reuse_interval"),
            require_current: globals.integer("password_require_current") == 1,
            random_chars: as_u64(&self.value("generated_random_password_length")) as usize,
        };
        run(&mut AccountStatement {
            own: &self.account,
            client_host: self.services.user.rsplit_once('@').map(|(_, host)| host),
            privileges: &self.privileges,
            view: &self.view(),
            schema: self.services.database.as_ref(),
            registry: &self.server.registry(),
            rules,
            now_micros: self.server.now_micros(),
            must_change_password: self.limits.must_change_password,
            diagnostics: &mut self.working,
        })
    }
}
