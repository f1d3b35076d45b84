//! SET in all its forms.

use super::{PResult, Parser};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::Tok;

impl<'a> Parser<'a> {
    pub(super) fn set(&mut self) -> PResult<Statement> {
        self.bump();
        let assigned = matches!(self.peek().kind, Tok::Eq | Tok::Assign | Tok::Dot);
        match self.kw() {
            Kw::PASSWORD if !assigned || self.peek().kind == Tok::Eq => return self.set_password(),
            Kw::ROLE if !assigned => {
                self.bump();
                let roles = self.role_choice(true)?;
                return Ok(Statement::SetRole(roles));
            }
            Kw::DEFAULT => {
                self.bump();
                self.expect(Kw::ROLE)?;
                let roles = self.role_choice(false)?;
                self.expect(Kw::TO)?;
                let users = self.user_list()?;
                return Ok(Statement::SetDefaultRole { roles, users });
            }
            Kw::RESOURCE if self.peek_kw() == Kw::GROUP => return self.set_resource_group(),
            Kw::TRANSACTION if !assigned => {
                self.bump();
                return self.set_transaction(None);
            }
            Kw::GLOBAL | Kw::SESSION | Kw::LOCAL
                if self.peek_kw() == Kw::TRANSACTION
                    && !matches!(self.peek2().kind, Tok::Eq | Tok::Assign) =>
            {
                let scope = self.opt_scope();
                self.bump();
                return self.set_transaction(scope);
            }
            _ => {}
        }
        let mut scope = None;
        Ok(Statement::Set(self.comma_list(|this| this.set_item(&mut scope))?))
    }

    /// A scope word, unless it is a name itself.
    fn opt_scope(&mut self) -> Option<VarScope> {
        let scope = match self.kw() {
            Kw::GLOBAL => VarScope::Global,
            Kw::SESSION | Kw::LOCAL => VarScope::Session,
            Kw::PERSIST => VarScope::Persist,
            Kw::PERSIST_ONLY => VarScope::PersistOnly,
            _ => return None,
        };
        if matches!(self.peek().kind, Tok::Eq | Tok::Assign | Tok::Dot) {
            return None;
        }
        self.bump();
        Some(scope)
    }

    /// One assignment. A scope word holds for the names after it too, until another one.
    fn set_item(&mut self, last_scope: &mut Option<VarScope>) -> PResult<SetItem> {
        match self.tok() {
            Tok::UserVar => {
                let name = self.user_var()?;
                self.set_eq()?;
                return Ok(SetItem::UserVar { name, value: self.boxed_expr()? });
            }
            Tok::AtAt => {
                let SystemVar { scope, component, name } = self.system_var()?;
                self.set_eq()?;
                let value = self.set_value()?;
                return Ok(SetItem::Variable { scope, at_at: true, component, name, value });
            }
            _ => {}
        }
        let assigned = matches!(self.peek().kind, Tok::Eq | Tok::Assign);
        match self.kw() {
            Kw::NAMES if !assigned => {
                self.bump();
                return self.set_names();
            }
            Kw::CHARACTER | Kw::CHAR => {
                self.bump();
                self.expect(Kw::SET)?;
                return Ok(SetItem::CharacterSet(self.charset_or_default()?));
            }
            Kw::CHARSET if !assigned => {
                self.bump();
                return Ok(SetItem::CharacterSet(self.charset_or_default()?));
            }
            _ => {}
        }
        let scope = self.opt_scope();
        let first = if self.at(Kw::DEFAULT) { self.any_word()? } else { self.ident()? };
        let (component, name) =
            if self.eat_tok(Tok::Dot) { (Some(first), self.ident()?) } else { (None, first) };
        self.set_eq()?;
        if scope.is_none() && component.is_none() && self.local_variable(&name.text).is_some() {
            let value = self.boxed_expr()?;
            return Ok(SetItem::Local { variable: self.assigned_variable(name)?, value });
        }
        if scope.is_none()
            && let Some(row) = &component
            && let Some(is_new) = self.row_of_trigger(&row.text)
        {
            let variable = self.row_column(is_new, &name, true)?;
            return Ok(SetItem::Local { variable, value: self.boxed_expr()? });
        }
        let scope = scope.or(*last_scope);
        *last_scope = scope;
        let value = self.set_value()?;
        Ok(SetItem::Variable { scope, at_at: false, component, name, value })
    }

    /// At SYSTEM: `SYSTEM SET name = value, ... APPLY`.
    pub(super) fn alter_system(&mut self) -> PResult<Statement> {
        self.bump();
        self.expect(Kw::SET)?;
        let items = self.comma_list(|this| {
            let name = this.ident()?;
            this.set_eq()?;
            let (scope, value) = (Some(VarScope::System), this.set_value()?);
            Ok(SetItem::Variable { scope, at_at: false, component: None, name, value })
        })?;
        if self.eat_name("APPLY") { Ok(Statement::Set(items)) } else { self.fail() }
    }

    pub(super) fn set_eq(&mut self) -> PResult<()> {
        if self.eat_tok(Tok::Eq) || self.eat_tok(Tok::Assign) { Ok(()) } else { self.fail() }
    }

    fn set_names(&mut self) -> PResult<SetItem> {
        if self.eat(Kw::DEFAULT) {
            return Ok(SetItem::Names { charset: None, collation: None });
        }
        let charset = Some(self.charset_name()?);
        let collation = if self.eat(Kw::COLLATE) { Some(self.charset_name()?) } else { None };
        Ok(SetItem::Names { charset, collation })
    }

    pub(super) fn charset_or_default(&mut self) -> PResult<Option<Ident>> {
        if self.eat(Kw::DEFAULT) { Ok(None) } else { Ok(Some(self.charset_name()?)) }
    }

    /// An expression, DEFAULT, or one of the reserved words that are values.
    pub(super) fn set_value(&mut self) -> PResult<Box<Expr>> {
        let word = match self.kw() {
            Kw::ON | Kw::ALL | Kw::SYSTEM => true,
            Kw::BINARY | Kw::ROW => {
                matches!(self.peek().kind, Tok::Comma | Tok::Semi | Tok::Eof)
            }
            _ => false,
        };
        if word {
            let name = self.any_word()?;
            let span = name.span;
            let column = ColumnName { schema: None, table: None, name };
            return Ok(Box::new(Expr { kind: ExprKind::Column(Box::new(column)), span }));
        }
        Ok(Box::new(self.expr_or_default()?))
    }

    fn set_password(&mut self) -> PResult<Statement> {
        self.bump();
        let user = if self.eat(Kw::FOR) { Some(self.user_name()?) } else { None };
        let password = if self.eat(Kw::TO) {
            self.expect(Kw::RANDOM)?;
            None
        } else {
            self.set_eq()?;
            Some(self.text()?)
        };
        let replace = if self.eat(Kw::REPLACE) { Some(self.text()?) } else { None };
        let retain_current = self.opt_retain_current()?;
        let set = SetPassword { user, password, replace, retain_current };
        Ok(Statement::SetPassword(Box::new(set)))
    }

    /// `default`: DEFAULT is a choice.
    pub(super) fn role_choice(&mut self, default: bool) -> PResult<RoleChoice> {
        if default && self.eat(Kw::DEFAULT) {
            return Ok(RoleChoice::Default);
        }
        if self.eat(Kw::NONE) {
            return Ok(RoleChoice::None);
        }
        if self.eat(Kw::ALL) {
            if default && self.eat(Kw::EXCEPT) {
                return Ok(RoleChoice::AllExcept(self.user_list()?));
            }
            return Ok(RoleChoice::All);
        }
        Ok(RoleChoice::Roles(self.user_list()?))
    }

    fn set_resource_group(&mut self) -> PResult<Statement> {
        self.bump();
        self.bump();
        let name = self.ident()?;
        let threads = if self.eat(Kw::FOR) { self.loose_list(Self::number)? } else { Vec::new() };
        Ok(Statement::SetResourceGroup { name, threads })
    }

    fn set_transaction(&mut self, scope: Option<VarScope>) -> PResult<Statement> {
        let mut set = SetTransaction { scope, isolation: None, read_only: None };
        loop {
            if self.at(Kw::READ) && set.read_only.is_none() {
                self.bump();
                set.read_only = Some(match self.eat_one_of(&[Kw::ONLY, Kw::WRITE]) {
                    Some(word) => word == Kw::ONLY,
                    None => return self.fail(),
                });
            } else if self.at(Kw::ISOLATION) && set.isolation.is_none() {
                self.bump();
                self.expect(Kw::LEVEL)?;
                set.isolation = Some(self.isolation()?);
            } else {
                return self.fail();
            }
            if !self.eat_tok(Tok::Comma) {
                return Ok(Statement::SetTransaction(set));
            }
        }
    }

    fn isolation(&mut self) -> PResult<Isolation> {
        match self.eat_one_of(&[Kw::READ, Kw::REPEATABLE, Kw::SERIALIZABLE]) {
            Some(Kw::READ) => match self.eat_one_of(&[Kw::UNCOMMITTED, Kw::COMMITTED]) {
                Some(Kw::COMMITTED) => Ok(Isolation::ReadCommitted),
                Some(_) => Ok(Isolation::ReadUncommitted),
                None => self.fail(),
            },
            Some(Kw::REPEATABLE) => {
                self.expect(Kw::READ)?;
                Ok(Isolation::RepeatableRead)
            }
            Some(_) => Ok(Isolation::Serializable),
            None => self.fail(),
        }
    }
}
