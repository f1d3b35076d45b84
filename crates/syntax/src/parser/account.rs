//! Users, roles and privileges.

use super::{PResult, Parser};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::Tok;

impl<'a> Parser<'a> {
    pub(super) fn create_user(&mut self, or_replace: bool) -> PResult<Statement> {
        self.bump();
        let if_not_exists = self.if_not_exists()?;
        let flags = CreateFlags { or_replace, if_not_exists };
        let users = self.comma_list(|p| p.user_spec(false))?;
        let mut default_roles = Vec::new();
        if self.eat2(Kw::DEFAULT, Kw::ROLE) {
            default_roles = self.user_list()?;
        }
        let options = self.account_options()?;
        let create = CreateUser { flags, users, default_roles, options };
        Ok(Statement::CreateUser(Box::new(create)))
    }

    pub(super) fn create_role(&mut self, or_replace: bool) -> PResult<Statement> {
        self.bump();
        let if_not_exists = self.if_not_exists()?;
        let flags = CreateFlags { or_replace, if_not_exists };
        Ok(Statement::CreateRole { flags, roles: self.user_list()? })
    }

    /// At USER.
    pub(super) fn alter_user(&mut self) -> PResult<Statement> {
        self.bump();
        let if_exists = self.if_exists()?;
        let users = self.comma_list(|p| p.user_spec(true))?;
        let mut default_role = None;
        if self.eat2(Kw::DEFAULT, Kw::ROLE) {
            default_role = Some(self.role_choice(false)?);
        }
        let options = self.account_options()?;
        let alter = AlterUser { if_exists, users, default_role, options };
        Ok(Statement::AlterUser(Box::new(alter)))
    }

    fn user_spec(&mut self, alter: bool) -> PResult<UserSpec> {
        let mut spec = UserSpec { user: self.user_name()?, ..UserSpec::default() };
        if self.at(Kw::IDENTIFIED) {
            spec.auth.push(self.auth_option(alter)?);
            while !alter && self.at2(Kw::AND, Kw::IDENTIFIED) {
                self.bump();
                spec.auth.push(self.auth_option(false)?);
            }
        } else if alter && self.eat2(Kw::DISCARD, Kw::OLD) {
            self.expect(Kw::PASSWORD)?;
            spec.discard_old_password = true;
        }
        if alter {
            while let Some(action) = self.factor_action()? {
                spec.factors.push(action);
            }
        }
        Ok(spec)
    }

    /// At IDENTIFIED. `alter`: it may have REPLACE and RETAIN CURRENT PASSWORD.
    fn auth_option(&mut self, alter: bool) -> PResult<AuthOption> {
        self.expect(Kw::IDENTIFIED)?;
        let mut auth = AuthOption::default();
        if self.eat(Kw::WITH) || self.eat_name("VIA") {
            auth.plugin = Some(self.ident_or_text()?);
            if self.eat(Kw::AS) || self.eat(Kw::USING) {
                auth.hash = Some(self.bytes_or_hex()?);
            } else if self.eat(Kw::INITIAL) {
                self.expect(Kw::AUTHENTICATION)?;
                auth.initial = Some(Box::new(self.auth_option(false)?));
            } else if self.eat(Kw::BY) {
                self.auth_password(&mut auth)?;
            }
        } else {
            self.expect(Kw::BY)?;
            self.auth_password(&mut auth)?;
        }
        if alter {
            if self.eat(Kw::REPLACE) {
                auth.replace = Some(self.text()?);
            }
            auth.retain_current = self.opt_retain_current()?;
        }
        Ok(auth)
    }

    fn auth_password(&mut self, auth: &mut AuthOption) -> PResult<()> {
        if self.eat(Kw::RANDOM) {
            auth.random = true;
            return self.expect(Kw::PASSWORD);
        }
        if self.eat(Kw::PASSWORD) {
            auth.hash = Some(self.bytes()?);
            return Ok(());
        }
        auth.password = Some(self.text()?);
        Ok(())
    }

    pub(super) fn opt_retain_current(&mut self) -> PResult<bool> {
        if !self.eat(Kw::RETAIN) {
            return Ok(false);
        }
        self.expect_all(&[Kw::CURRENT, Kw::PASSWORD])?;
        Ok(true)
    }

    fn factor_action(&mut self) -> PResult<Option<FactorAction>> {
        let kw = self.kw();
        if matches!(kw, Kw::ADD | Kw::MODIFY | Kw::DROP) {
            self.bump();
            let factor = self.number()?;
            self.expect(Kw::FACTOR)?;
            return Ok(Some(match kw {
                Kw::ADD => FactorAction::Add(factor, self.auth_option(false)?),
                Kw::MODIFY => FactorAction::Modify(factor, self.auth_option(false)?),
                _ => FactorAction::Drop(factor),
            }));
        }
        if !self.at_tok(Tok::Int) || self.peek_kw() != Kw::FACTOR {
            return Ok(None);
        }
        let factor = self.number()?;
        self.bump();
        let action = match self.eat_one_of(&[Kw::INITIATE, Kw::FINISH, Kw::UNREGISTER]) {
            Some(Kw::INITIATE) => {
                self.expect(Kw::REGISTRATION)?;
                FactorAction::InitiateRegistration(factor)
            }
            Some(Kw::FINISH) => {
                self.expect_all(&[Kw::REGISTRATION, Kw::SET, Kw::CHALLENGE_RESPONSE, Kw::AS])?;
                FactorAction::FinishRegistration { factor, response: self.text()? }
            }
            Some(_) => FactorAction::Unregister(factor),
            None => return self.fail(),
        };
        Ok(Some(action))
    }

    fn account_options(&mut self) -> PResult<AccountOptions> {
        let mut options = AccountOptions::default();
        if self.eat(Kw::REQUIRE) {
            options.require = Some(self.require()?);
        }
        if self.eat(Kw::WITH) {
            options.limits = self.resource_limits()?;
        }
        // COMMENT or ATTRIBUTE ends the list.
        loop {
            match self.kw() {
                Kw::PASSWORD => {
                    self.bump();
                    let option = self.password_option()?;
                    options.password.push(option);
                }
                Kw::FAILED_LOGIN_ATTEMPTS => {
                    self.bump();
                    let attempts = self.number()?;
                    options.password.push(PasswordOption::FailedLoginAttempts(attempts));
                }
                Kw::PASSWORD_LOCK_TIME => {
                    self.bump();
                    let days = if self.eat(Kw::UNBOUNDED) { None } else { Some(self.number()?) };
                    options.password.push(PasswordOption::LockTime(days));
                }
                Kw::ACCOUNT => {
                    self.bump();
                    options.lock = match self.eat_one_of(&[Kw::LOCK, Kw::UNLOCK]) {
                        Some(word) => Some(word == Kw::LOCK),
                        None => return self.fail(),
                    };
                }
                Kw::COMMENT => {
                    self.bump();
                    options.comment = Some(self.text()?);
                    return Ok(options);
                }
                Kw::ATTRIBUTE => {
                    self.bump();
                    options.attribute = Some(self.text()?);
                    return Ok(options);
                }
                _ => return Ok(options),
            }
        }
    }

    fn require(&mut self) -> PResult<Require> {
        match self.eat_one_of(&[Kw::NONE, Kw::SSL, Kw::X509]) {
            Some(Kw::NONE) => return Ok(Require::None),
            Some(Kw::SSL) => return Ok(Require::Ssl),
            Some(_) => return Ok(Require::X509),
            None => {}
        }
        let (mut subject, mut issuer, mut cipher) = (None, None, None);
        loop {
            match self.eat_one_of(&[Kw::SUBJECT, Kw::ISSUER, Kw::CIPHER]) {
                Some(Kw::SUBJECT) => subject = Some(self.text()?),
                Some(Kw::ISSUER) => issuer = Some(self.text()?),
                Some(_) => cipher = Some(self.text()?),
                None => break,
            }
            self.eat(Kw::AND);
        }
        if subject.is_none() && issuer.is_none() && cipher.is_none() {
            return self.fail();
        }
        Ok(Require::Specified { subject, issuer, cipher })
    }

    fn resource_limits(&mut self) -> PResult<Vec<(Ident, u64)>> {
        let mut limits = Vec::new();
        while matches!(
            self.kw(),
            Kw::MAX_QUERIES_PER_HOUR
                | Kw::MAX_UPDATES_PER_HOUR
                | Kw::MAX_CONNECTIONS_PER_HOUR
                | Kw::MAX_USER_CONNECTIONS
        ) {
            let word = self.any_word()?;
            limits.push((word, self.number()?));
        }
        if limits.is_empty() { self.fail() } else { Ok(limits) }
    }

    /// After PASSWORD.
    fn password_option(&mut self) -> PResult<PasswordOption> {
        match self.eat_one_of(&[Kw::EXPIRE, Kw::HISTORY, Kw::REUSE, Kw::REQUIRE]) {
            Some(Kw::EXPIRE) => {
                if self.eat(Kw::INTERVAL) {
                    let days = self.number()?;
                    self.expect(Kw::DAY)?;
                    return Ok(PasswordOption::ExpireInterval(days));
                }
                Ok(match self.eat_one_of(&[Kw::DEFAULT, Kw::NEVER]) {
                    Some(Kw::DEFAULT) => PasswordOption::ExpireDefault,
                    Some(_) => PasswordOption::ExpireNever,
                    None => PasswordOption::Expire,
                })
            }
            Some(Kw::HISTORY) => {
                if self.eat(Kw::DEFAULT) {
                    return Ok(PasswordOption::History(None));
                }
                Ok(PasswordOption::History(Some(self.number()?)))
            }
            Some(Kw::REUSE) => {
                self.expect(Kw::INTERVAL)?;
                if self.eat(Kw::DEFAULT) {
                    return Ok(PasswordOption::ReuseInterval(None));
                }
                let days = self.number()?;
                self.expect(Kw::DAY)?;
                Ok(PasswordOption::ReuseInterval(Some(days)))
            }
            Some(_) => {
                self.expect(Kw::CURRENT)?;
                Ok(PasswordOption::RequireCurrent(
                    match self.eat_one_of(&[Kw::OPTIONAL, Kw::DEFAULT]) {
                        Some(Kw::OPTIONAL) => Some(false),
                        Some(_) => None,
                        None => Some(true),
                    },
                ))
            }
            None => self.fail(),
        }
    }

    // --- GRANT, REVOKE

    pub(super) fn grant(&mut self) -> PResult<Statement> {
        self.bump();
        if self.eat(Kw::PROXY) {
            self.expect(Kw::ON)?;
            let proxied = self.user_name()?;
            self.expect(Kw::TO)?;
            let users = self.comma_list(|p| p.user_spec(false))?;
            let grant_option = self.eat(Kw::WITH);
            if grant_option {
                self.expect_all(&[Kw::GRANT, Kw::OPTION])?;
            }
            let grant = Grant::Proxy { proxied, users, grant_option };
            return Ok(Statement::Grant(Box::new(grant)));
        }
        let start = self.start() as usize;
        let (privileges, roles) = self.privileges_or_roles()?;
        if self.eat(Kw::ON) {
            let Some(privileges) = privileges else { return self.fail_at(start) };
            return self.grant_privileges(privileges);
        }
        let Some(roles) = roles else {
            return if self.at(Kw::TO) { self.fail_at(start) } else { self.fail() };
        };
        self.expect(Kw::TO)?;
        let users = self.user_list()?;
        let admin_option = self.eat(Kw::WITH);
        if admin_option {
            self.expect_all(&[Kw::ADMIN, Kw::OPTION])?;
        }
        Ok(Statement::Grant(Box::new(Grant::Roles { roles, users, admin_option })))
    }

    fn grant_privileges(&mut self, privileges: Privileges) -> PResult<Statement> {
        let target = self.grant_target()?;
        self.expect(Kw::TO)?;
        let users = self.comma_list(|p| p.user_spec(false))?;
        let mut options = AccountOptions::default();
        if self.eat(Kw::REQUIRE) {
            options.require = Some(self.require()?);
        }
        let mut grant_option = false;
        if self.eat(Kw::WITH) {
            loop {
                if self.eat2(Kw::GRANT, Kw::OPTION) {
                    grant_option = true;
                } else if !grant_option || self.at_limit() {
                    options.limits.extend(self.resource_limits()?);
                } else {
                    break;
                }
                if !self.at(Kw::GRANT) && !self.at_limit() {
                    break;
                }
            }
        }
        let (mut as_user, mut with_role) = (None, None);
        if self.eat(Kw::AS) {
            as_user = Some(self.user_name()?);
            if self.eat2(Kw::WITH, Kw::ROLE) {
                with_role = Some(self.role_choice(true)?);
            }
        }
        Ok(Statement::Grant(Box::new(Grant::Privileges {
            privileges,
            target,
            users,
            grant_option,
            as_user,
            with_role,
            options,
        })))
    }

    fn at_limit(&self) -> bool {
        matches!(
            self.kw(),
            Kw::MAX_QUERIES_PER_HOUR
                | Kw::MAX_UPDATES_PER_HOUR
                | Kw::MAX_CONNECTIONS_PER_HOUR
                | Kw::MAX_USER_CONNECTIONS
        )
    }

    pub(super) fn revoke(&mut self) -> PResult<Statement> {
        self.bump();
        let if_exists = self.if_exists()?;
        let what = self.revoke_kind()?;
        self.expect(Kw::FROM)?;
        let users = self.user_list()?;
        let ignore_unknown_user = self.eat(Kw::IGNORE);
        if ignore_unknown_user {
            self.expect_all(&[Kw::UNKNOWN, Kw::USER])?;
        }
        let revoke = Revoke { if_exists, ignore_unknown_user, what, users };
        Ok(Statement::Revoke(Box::new(revoke)))
    }

    fn revoke_kind(&mut self) -> PResult<RevokeKind> {
        if self.eat(Kw::PROXY) {
            self.expect(Kw::ON)?;
            return Ok(RevokeKind::Proxy(self.user_name()?));
        }
        if self.at2(Kw::ADMIN, Kw::OPTION) {
            self.bump();
            self.bump();
            self.expect(Kw::FOR)?;
            return Ok(RevokeKind::Roles { roles: self.user_list()?, admin_option: true });
        }
        let (privileges, roles) = self.privileges_or_roles()?;
        if self.eat(Kw::ON) {
            let Some(privileges) = privileges else { return self.fail() };
            return Ok(RevokeKind::Privileges { privileges, target: self.grant_target()? });
        }
        if privileges == Some(Privileges::All) && self.eat_tok(Tok::Comma) {
            self.expect_all(&[Kw::GRANT, Kw::OPTION])?;
            return Ok(RevokeKind::Everything);
        }
        match roles {
            Some(roles) => Ok(RevokeKind::Roles { roles, admin_option: false }),
            None => self.fail(),
        }
    }

    /// A list that may be of privileges, of roles, or either.
    #[allow(clippy::type_complexity)]
    fn privileges_or_roles(&mut self) -> PResult<(Option<Privileges>, Option<Vec<UserName>>)> {
        if self.eat(Kw::ALL) {
            self.eat(Kw::PRIVILEGES);
            return Ok((Some(Privileges::All), None));
        }
        let mut privileges = Some(Vec::new());
        let mut roles = Some(Vec::new());
        loop {
            if let Some(name) = self.static_privilege()? {
                let columns =
                    if self.at_tok(Tok::LParen) { self.paren_idents()? } else { Vec::new() };
                roles = None;
                if let Some(list) = &mut privileges {
                    list.push(Privilege { name, dynamic: false, columns });
                }
            } else {
                let user = self.user_name()?;
                let columns =
                    if self.at_tok(Tok::LParen) { self.paren_idents()? } else { Vec::new() };
                if user.host.is_some() || user.current {
                    privileges = None;
                }
                if !columns.is_empty() {
                    roles = None;
                }
                if let Some(list) = &mut privileges {
                    let name = user.user.clone();
                    list.push(Privilege { name, dynamic: true, columns });
                }
                if let Some(list) = &mut roles {
                    list.push(user);
                }
            }
            if !self.eat_tok(Tok::Comma) {
                break;
            }
        }
        Ok((privileges.map(Privileges::List), roles))
    }

    /// A privilege that consists of keywords.
    fn static_privilege(&mut self) -> PResult<Option<Box<str>>> {
        let first = self.kw();
        let name: &str = match first {
            Kw::SELECT
            | Kw::INSERT
            | Kw::UPDATE
            | Kw::DELETE
            | Kw::REFERENCES
            | Kw::USAGE
            | Kw::INDEX
            | Kw::DROP
            | Kw::TRIGGER
            | Kw::EXECUTE
            | Kw::RELOAD
            | Kw::SHUTDOWN
            | Kw::PROCESS
            | Kw::FILE
            | Kw::SUPER
            | Kw::EVENT => {
                self.bump();
                if first == Kw::DROP && self.eat(Kw::ROLE) {
                    return Ok(Some("DROP ROLE".into()));
                }
                return Ok(Some(first.name().into()));
            }
            Kw::ALTER => {
                self.bump();
                if self.eat(Kw::ROUTINE) { "ALTER ROUTINE" } else { "ALTER" }
            }
            Kw::CREATE => {
                self.bump();
                self.create_privilege()?
            }
            Kw::GRANT => {
                self.bump();
                self.expect(Kw::OPTION)?;
                "GRANT OPTION"
            }
            Kw::SHOW => {
                self.bump();
                match self.eat_one_of(&[Kw::DATABASES, Kw::VIEW]) {
                    Some(Kw::DATABASES) => "SHOW DATABASES",
                    Some(_) => "SHOW VIEW",
                    None => return self.fail(),
                }
            }
            Kw::LOCK => {
                self.bump();
                self.expect(Kw::TABLES)?;
                "LOCK TABLES"
            }
            Kw::REPLICATION => {
                self.bump();
                match self.eat_one_of(&[Kw::CLIENT, Kw::SLAVE, Kw::REPLICA]) {
                    Some(Kw::CLIENT) => "REPLICATION CLIENT",
                    Some(_) => "REPLICATION SLAVE",
                    None => return self.fail(),
                }
            }
            _ => return Ok(None),
        };
        Ok(Some(name.into()))
    }

    /// After CREATE.
    fn create_privilege(&mut self) -> PResult<&'static str> {
        const MORE: &[Kw] =
            &[Kw::TEMPORARY, Kw::ROUTINE, Kw::VIEW, Kw::USER, Kw::TABLESPACE, Kw::ROLE];
        Ok(match self.eat_one_of(MORE) {
            Some(Kw::TEMPORARY) => {
                self.expect(Kw::TABLES)?;
                "CREATE TEMPORARY TABLES"
            }
            Some(Kw::ROUTINE) => "CREATE ROUTINE",
            Some(Kw::VIEW) => "CREATE VIEW",
            Some(Kw::USER) => "CREATE USER",
            Some(Kw::TABLESPACE) => "CREATE TABLESPACE",
            Some(_) => "CREATE ROLE",
            None => "CREATE",
        })
    }

    fn grant_target(&mut self) -> PResult<GrantTarget> {
        let kind = match self.kw() {
            Kw::TABLE | Kw::FUNCTION | Kw::PROCEDURE | Kw::LIBRARY => {
                let kind = self.kw();
                self.bump();
                kind
            }
            _ => Kw::TABLE,
        };
        if self.eat_tok(Tok::Star) {
            if self.eat_tok(Tok::Dot) {
                self.expect_tok(Tok::Star)?;
                return Ok(GrantTarget::Global);
            }
            return Ok(GrantTarget::CurrentSchema);
        }
        let first = self.ident()?;
        if !self.eat_tok(Tok::Dot) {
            return Ok(grant_object(kind, ObjectName { schema: None, name: first }));
        }
        if self.eat_tok(Tok::Star) {
            return Ok(GrantTarget::Schema(first));
        }
        let name = self.ident()?;
        Ok(grant_object(kind, ObjectName { schema: Some(first), name }))
    }
}

fn grant_object(kind: Kw, name: ObjectName) -> GrantTarget {
    match kind {
        Kw::FUNCTION => GrantTarget::Function(name),
        Kw::PROCEDURE => GrantTarget::Procedure(name),
        Kw::LIBRARY => GrantTarget::Library(name),
        _ => GrantTarget::Table(name),
    }
}
