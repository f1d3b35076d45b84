//! ALTER TABLE.

use super::create::TableElement;
use super::{PResult, Parser};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::Tok;

impl<'a> Parser<'a> {
    /// After `TABLE`.
    pub(super) fn alter_table(&mut self) -> PResult<Statement> {
        let if_exists = self.if_exists()?;
        let name = self.object_name()?;
        let mut alter =
            Box::new(AlterTable { name, if_exists, actions: Vec::new(), partitioning: None });
        if matches!(self.tok(), Tok::Eof | Tok::Semi) {
            return Ok(Statement::AlterTable(alter));
        }
        loop {
            if self.at(Kw::PARTITION) && self.peek_kw() == Kw::BY {
                alter.partitioning = Some(self.partitioning()?);
                break;
            }
            self.alter_action(&mut alter.actions)?;
            if alter.actions.last().is_some_and(stands_alone) {
                break;
            }
            if self.eat_tok(Tok::Comma) {
                continue;
            }
            let more = self.at(Kw::PARTITION) || self.at(Kw::REMOVE) || self.at_table_option();
            if !more {
                break;
            }
        }
        Ok(Statement::AlterTable(alter))
    }

    fn alter_action(&mut self, actions: &mut Vec<AlterAction>) -> PResult<()> {
        let action = match self.kw() {
            Kw::ADD => return self.alter_add(actions),
            Kw::CHANGE => self.alter_change()?,
            Kw::MODIFY => self.alter_modify()?,
            Kw::DROP => self.alter_drop()?,
            Kw::ALTER => self.alter_alter()?,
            Kw::RENAME => self.alter_rename()?,
            Kw::CONVERT => self.alter_charset()?,
            Kw::DISABLE | Kw::ENABLE => {
                let enable = self.at(Kw::ENABLE);
                self.bump();
                self.expect(Kw::KEYS)?;
                if enable { AlterAction::EnableKeys } else { AlterAction::DisableKeys }
            }
            Kw::FORCE => {
                self.bump();
                AlterAction::Force
            }
            Kw::ORDER => AlterAction::OrderBy(self.opt_order_by()?),
            Kw::ALGORITHM => {
                self.bump();
                self.opt_eq();
                AlterAction::Algorithm(self.any_word()?)
            }
            Kw::LOCK => {
                self.bump();
                self.opt_eq();
                AlterAction::Lock(self.any_word()?)
            }
            Kw::WITH | Kw::WITHOUT if self.peek_kw() == Kw::VALIDATION => {
                let with = self.at(Kw::WITH);
                self.bump();
                self.bump();
                AlterAction::Validation(with)
            }
            Kw::SECONDARY_LOAD | Kw::SECONDARY_UNLOAD => {
                let load = self.at(Kw::SECONDARY_LOAD);
                self.bump();
                if load { AlterAction::SecondaryLoad } else { AlterAction::SecondaryUnload }
            }
            // They must be the only action.
            Kw::EXCHANGE | Kw::DISCARD | Kw::IMPORT if !actions.is_empty() => return self.fail(),
            Kw::DISCARD
            | Kw::IMPORT
            | Kw::TRUNCATE
            | Kw::COALESCE
            | Kw::REORGANIZE
            | Kw::EXCHANGE
            | Kw::ANALYZE
            | Kw::CHECK
            | Kw::OPTIMIZE
            | Kw::REBUILD
            | Kw::REPAIR
            | Kw::REMOVE => self.alter_partition()?,
            _ => match self.opt_table_option()? {
                Some(option) => AlterAction::Option(option),
                None => return self.fail(),
            },
        };
        actions.push(action);
        Ok(())
    }

    fn alter_change(&mut self) -> PResult<AlterAction> {
        self.bump();
        self.eat(Kw::COLUMN);
        let if_exists = self.if_exists()?;
        let old = self.ident()?;
        let column = Box::new(self.column_def()?);
        let position = self.column_position()?;
        Ok(AlterAction::ChangeColumn { old, if_exists, column, position })
    }

    fn alter_modify(&mut self) -> PResult<AlterAction> {
        self.bump();
        self.eat(Kw::COLUMN);
        let if_exists = self.if_exists()?;
        let column = Box::new(self.column_def()?);
        let position = self.column_position()?;
        Ok(AlterAction::ModifyColumn { column, if_exists, position })
    }

    /// `CONVERT TO CHARACTER SET ..`
    fn alter_charset(&mut self) -> PResult<AlterAction> {
        self.bump();
        self.expect(Kw::TO)?;
        if !self.eat(Kw::CHARSET) {
            if !self.eat(Kw::CHARACTER) {
                self.expect(Kw::CHAR)?;
            }
            self.expect(Kw::SET)?;
        }
        let charset = self.charset_or_default()?;
        let mut collation = None;
        if self.eat(Kw::COLLATE) {
            collation = Some(self.charset_name()?);
        }
        Ok(AlterAction::ConvertCharset { charset, collation })
    }

    fn column_position(&mut self) -> PResult<Option<ColumnPosition>> {
        if self.eat(Kw::FIRST) {
            return Ok(Some(ColumnPosition::First));
        }
        if self.eat(Kw::AFTER) {
            return Ok(Some(ColumnPosition::After(self.ident()?)));
        }
        Ok(None)
    }

    fn alter_add(&mut self, actions: &mut Vec<AlterAction>) -> PResult<()> {
        self.bump();
        if self.at(Kw::PARTITION) {
            actions.push(AlterAction::Partition(Box::new(self.add_partition()?)));
            return Ok(());
        }
        if self.at(Kw::SYSTEM) && self.peek_kw() == Kw::VERSIONING {
            self.bump();
            self.bump();
            actions.push(AlterAction::Option(TableOption::SystemVersioning));
            return Ok(());
        }
        if self.at_constraint() {
            let constraint = Box::new(self.table_constraint()?);
            actions.push(AlterAction::AddConstraint(constraint));
            return Ok(());
        }
        if self.at_period(Kw::NOT) {
            self.bump();
            let if_not_exists = self.if_not_exists()?;
            self.expect(Kw::FOR)?;
            let (name, start, end) = self.period()?;
            actions.push(AlterAction::AddPeriod { name, start, end, if_not_exists });
            return Ok(());
        }
        self.eat(Kw::COLUMN);
        let if_not_exists = self.if_not_exists()?;
        if !self.at_tok(Tok::LParen) {
            let column = Box::new(self.column_def()?);
            let position = self.column_position()?;
            actions.push(AlterAction::AddColumn { column, if_not_exists, position });
            return Ok(());
        }
        let elements = self.paren_list(Self::table_element)?;
        actions.extend(elements.into_iter().map(|element| match element {
            TableElement::Column(column) => {
                AlterAction::AddColumn { column, if_not_exists, position: None }
            }
            TableElement::Constraint(constraint) => AlterAction::AddConstraint(constraint),
            TableElement::Period(name, start, end) => {
                AlterAction::AddPeriod { name, start, end, if_not_exists: false }
            }
        }));
        Ok(())
    }

    /// `PERIOD FOR`, or `PERIOD IF` and `word`.
    fn at_period(&mut self, word: Kw) -> bool {
        self.at2(Kw::PERIOD, Kw::FOR) || self.at2(Kw::PERIOD, Kw::IF) && self.peek2().kw == word
    }

    fn alter_drop(&mut self) -> PResult<AlterAction> {
        self.bump();
        let kw = self.kw();
        match kw {
            Kw::PARTITION => {
                self.bump();
                let if_exists = self.if_exists()?;
                let names = self.ident_list()?;
                let drop = PartitionAction::Drop { if_exists, names };
                return Ok(AlterAction::Partition(Box::new(drop)));
            }
            Kw::FOREIGN => {
                self.bump();
                self.expect(Kw::KEY)?;
                let if_exists = self.if_exists()?;
                return Ok(AlterAction::DropForeignKey { name: self.ident()?, if_exists });
            }
            Kw::PRIMARY => {
                self.bump();
                self.expect(Kw::KEY)?;
                return Ok(AlterAction::DropPrimaryKey);
            }
            Kw::INDEX | Kw::KEY => {
                self.bump();
                let if_exists = self.if_exists()?;
                return Ok(AlterAction::DropIndex { name: self.index_name()?, if_exists });
            }
            Kw::CHECK => {
                self.bump();
                return Ok(AlterAction::DropCheck(self.ident()?));
            }
            Kw::CONSTRAINT => {
                self.bump();
                let if_exists = self.if_exists()?;
                return Ok(AlterAction::DropConstraint { name: self.index_name()?, if_exists });
            }
            Kw::SYSTEM if self.peek_kw() == Kw::VERSIONING => {
                self.bump();
                self.bump();
                return Ok(AlterAction::DropSystemVersioning);
            }
            Kw::PERIOD if self.at_period(Kw::EXISTS) => {
                self.bump();
                let if_exists = self.if_exists()?;
                self.expect(Kw::FOR)?;
                return Ok(AlterAction::DropPeriod { name: self.ident()?, if_exists });
            }
            _ => {}
        }
        self.eat(Kw::COLUMN);
        let if_exists = self.if_exists()?;
        let name = self.ident()?;
        let _ = self.eat(Kw::RESTRICT) || self.eat(Kw::CASCADE);
        Ok(AlterAction::DropColumn { name, if_exists })
    }

    fn alter_alter(&mut self) -> PResult<AlterAction> {
        self.bump();
        let kw = self.kw();
        match kw {
            Kw::INDEX | Kw::KEY => {
                self.bump();
                let _ = self.if_exists()?;
                let name = self.index_name()?;
                let visible = if self.at2(Kw::NOT, Kw::IGNORED) {
                    self.bump();
                    true
                } else {
                    match self.kw() {
                        Kw::VISIBLE => true,
                        Kw::INVISIBLE | Kw::IGNORED => false,
                        _ => return self.fail(),
                    }
                };
                self.bump();
                return Ok(AlterAction::AlterIndexVisible { name, visible });
            }
            Kw::CHECK | Kw::CONSTRAINT => {
                self.bump();
                let name = self.ident()?;
                let enforced = !self.eat(Kw::NOT);
                self.expect(Kw::ENFORCED)?;
                let check = kw == Kw::CHECK;
                return Ok(AlterAction::AlterConstraintEnforced { name, check, enforced });
            }
            _ => {}
        }
        self.eat(Kw::COLUMN);
        let name = self.ident()?;
        match self.eat_one_of(&[Kw::SET, Kw::DROP]) {
            Some(Kw::SET) => {
                if let Some(word) = self.eat_one_of(&[Kw::VISIBLE, Kw::INVISIBLE]) {
                    let visible = word == Kw::VISIBLE;
                    return Ok(AlterAction::AlterColumnVisible { name, visible });
                }
                self.expect(Kw::DEFAULT)?;
                let (value, parenthesised) = self.default_value()?;
                Ok(AlterAction::AlterColumnDefault { name, default: Some(value), parenthesised })
            }
            Some(_) => {
                self.expect(Kw::DEFAULT)?;
                Ok(AlterAction::AlterColumnDefault { name, default: None, parenthesised: false })
            }
            None => self.fail(),
        }
    }

    fn alter_rename(&mut self) -> PResult<AlterAction> {
        self.bump();
        match self.kw() {
            Kw::COLUMN => {
                self.bump();
                let old = self.ident()?;
                self.expect(Kw::TO)?;
                Ok(AlterAction::RenameColumn { old, new: self.ident()? })
            }
            Kw::INDEX | Kw::KEY => {
                self.bump();
                let old = self.index_name()?;
                self.expect(Kw::TO)?;
                Ok(AlterAction::RenameIndex { old, new: self.ident()? })
            }
            _ => {
                let _ = self.eat(Kw::TO) || self.eat(Kw::AS) || self.eat_tok(Tok::Eq);
                Ok(AlterAction::RenameTable(self.object_name()?))
            }
        }
    }

    // --- partitions

    fn add_partition(&mut self) -> PResult<PartitionAction> {
        self.bump();
        let _ = self.if_not_exists()?;
        let no_binlog = self.opt_no_binlog();
        if self.eat(Kw::PARTITIONS) {
            let count = Some(self.number()?);
            return Ok(PartitionAction::Add { no_binlog, partitions: Vec::new(), count });
        }
        let partitions = self.partition_defs()?;
        Ok(PartitionAction::Add { no_binlog, partitions, count: None })
    }

    /// `NO_WRITE_TO_BINLOG`, `LOCAL`.
    pub(super) fn opt_no_binlog(&mut self) -> bool {
        self.eat(Kw::NO_WRITE_TO_BINLOG) || self.eat(Kw::LOCAL)
    }

    fn partition_names(&mut self) -> PResult<PartitionNames> {
        if self.eat(Kw::ALL) {
            return Ok(PartitionNames::All);
        }
        Ok(PartitionNames::List(self.ident_list()?))
    }

    fn alter_partition(&mut self) -> PResult<AlterAction> {
        let kw = self.kw();
        self.bump();
        if kw == Kw::REMOVE {
            self.expect(Kw::PARTITIONING)?;
            return Ok(AlterAction::Partition(Box::new(PartitionAction::Remove)));
        }
        if matches!(kw, Kw::DISCARD | Kw::IMPORT) && self.eat(Kw::TABLESPACE) {
            return Ok(if kw == Kw::DISCARD {
                AlterAction::DiscardTablespace
            } else {
                AlterAction::ImportTablespace
            });
        }
        self.expect(Kw::PARTITION)?;
        let action = self.partition_action(kw)?;
        Ok(AlterAction::Partition(Box::new(action)))
    }

    fn partition_action(&mut self, kw: Kw) -> PResult<PartitionAction> {
        use PartitionAction as P;
        let may_log = matches!(
            kw,
            Kw::COALESCE | Kw::REORGANIZE | Kw::ANALYZE | Kw::OPTIMIZE | Kw::REBUILD | Kw::REPAIR
        );
        let no_binlog = may_log && self.opt_no_binlog();
        Ok(match kw {
            Kw::DISCARD | Kw::IMPORT => {
                let names = self.partition_names()?;
                self.expect(Kw::TABLESPACE)?;
                if kw == Kw::DISCARD { P::Discard(names) } else { P::Import(names) }
            }
            Kw::TRUNCATE => P::Truncate(self.partition_names()?),
            Kw::COALESCE => P::Coalesce { no_binlog, count: self.number()? },
            Kw::REORGANIZE => {
                let mut names = Vec::new();
                let mut into = Vec::new();
                if self.at_ident() {
                    names = self.ident_list()?;
                    self.expect(Kw::INTO)?;
                    into = self.partition_defs()?;
                }
                P::Reorganize { no_binlog, names, into }
            }
            Kw::EXCHANGE => {
                let name = self.ident()?;
                self.expect_all(&[Kw::WITH, Kw::TABLE])?;
                let table = self.object_name()?;
                let mut validation = true;
                if self.at(Kw::WITHOUT) || self.at(Kw::WITH) {
                    validation = self.at(Kw::WITH);
                    self.bump();
                    self.expect(Kw::VALIDATION)?;
                }
                if !matches!(self.tok(), Tok::Eof | Tok::Semi) {
                    return self.fail();
                }
                P::Exchange { name, table, validation }
            }
            Kw::ANALYZE => P::Analyze { no_binlog, names: self.partition_names()? },
            Kw::CHECK => {
                let names = self.partition_names()?;
                P::Check { names, options: self.check_words()? }
            }
            Kw::OPTIMIZE => P::Optimize { no_binlog, names: self.partition_names()? },
            Kw::REBUILD => P::Rebuild { no_binlog, names: self.partition_names()? },
            _ => {
                let names = self.partition_names()?;
                P::Repair { no_binlog, names, options: self.check_words()? }
            }
        })
    }

    /// `FOR UPGRADE`, `QUICK`, .. as identifiers.
    fn check_words(&mut self) -> PResult<Vec<Ident>> {
        let mut words = Vec::new();
        loop {
            match self.kw() {
                Kw::FOR => {
                    self.bump();
                    if !self.at(Kw::UPGRADE) {
                        return self.fail();
                    }
                    words.push(self.any_word()?);
                }
                Kw::QUICK | Kw::FAST | Kw::MEDIUM | Kw::EXTENDED | Kw::CHANGED | Kw::USE_FRM => {
                    words.push(self.any_word()?);
                }
                _ => return Ok(words),
            }
        }
    }
}

/// Whether no other action may follow.
fn stands_alone(action: &AlterAction) -> bool {
    if let AlterAction::Partition(action) = action {
        return matches!(**action, PartitionAction::Discard(_) | PartitionAction::Import(_));
    }
    matches!(action, AlterAction::DiscardTablespace | AlterAction::ImportTablespace)
}
