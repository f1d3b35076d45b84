//! GROUP BY: the keys, and the sets of keys that ROLLUP, CUBE and GROUPING SETS mean.

use errors::{ErrorCode, Result, bail};
use plan::{Expr, GroupSets, OutputColumn, Register};
use syntax::ast::{self, GroupElement};

use crate::binder::Binder;
use crate::block::{reads_aggregate, reads_window};
use crate::scope::{Clause, ListedItem, names_equal};

/// Sets of keys of one grouping.
const SETS_MAX: usize = 4096;

/// Parts of one CUBE: it has two to the power of this many sets.
const CUBE_PARTS_MAX: usize = 12;

impl Binder<'_> {
    /// `outputs`: of the select list, which GROUP BY may name.
    pub(crate) fn bind_group_by(
        &mut self,
        group_by: &ast::GroupBy,
        outputs: &mut [OutputColumn],
    ) -> Result<()> {
        self.block().clause = Clause::Group;
        let is_plain = |element: &GroupElement| matches!(element, GroupElement::Expr(_));
        if !group_by.elements.iter().all(is_plain) {
            return self.bind_group_sets(&group_by.elements);
        }
        for element in &group_by.elements {
            let GroupElement::Expr(expr) = element else { continue };
            let key = self.bind_group_key(expr)?;
            // In ROLLUP each of two equal keys has its level.
            let is_known = self.block().keys.iter().any(|(_, known)| *known == key);
            if group_by.with_rollup || !is_known {
                self.add_group_key(key);
            }
            if group_by.with_rollup && is_known {
                self.show_later_key(expr, outputs);
            }
        }
        if group_by.with_rollup {
            self.block().sets = GroupSets::Rollup;
        }
        Ok(())
    }

    /// The last key equals one before it: an item of the select list by whose alias or number it is written shows it, not the first.
    fn show_later_key(&mut self, written: &ast::Expr, outputs: &mut [OutputColumn]) {
        let block = self.block();
        let Some((register, key)) = block.keys.last().cloned() else { return };
        let at = if let ast::ExprKind::Literal(ast::Literal::Integer(number)) = &written.kind {
            usize::try_from(*number).ok().and_then(|number| number.checked_sub(1))
        } else if let ast::ExprKind::Column(name) = &written.kind
            && name.table.is_none()
        {
            let is_named = |item: &ListedItem| {
                item.aliased && names_equal(&item.name, &name.name.text) && item.expr == key
            };
            block.items.iter().position(is_named)
        } else {
            None
        };
        let Some(at) = at else { return };
        if let (Some(item), Some(output)) = (block.items.get_mut(at), outputs.get_mut(at))
            && output.expr == key
        {
            item.expr = Expr::column(register, key.ty().with_nullable(true));
            output.expr = item.expr.clone();
        }
    }

    /// Every set of one element with every set of the others.
    fn bind_group_sets(&mut self, elements: &[GroupElement]) -> Result<()> {
        let mut sets = vec![0];
        for element in elements {
            let own = self.element_sets(element)?;
            check_count("GROUPING SETS", sets.len() * own.len(), SETS_MAX)?;
            sets = sets.iter().flat_map(|set| own.iter().map(move |other| set | other)).collect();
        }
        self.block().sets = match sets.as_slice() {
            // One set of all keys is a plain grouping; without keys it has a row even if there is none to group.
            [set] if *set != 0 => GroupSets::One,
            _ => GroupSets::Listed(sets),
        };
        Ok(())
    }

    /// The sets of an element: one bit for each key.
    fn element_sets(&mut self, element: &GroupElement) -> Result<Vec<u64>> {
        match element {
            GroupElement::Expr(expr) => Ok(vec![self.key_bit(expr)?]),
            GroupElement::Set(keys) => Ok(vec![self.key_bits(keys)?]),
            GroupElement::Rollup(parts) => {
                check_count("ROLLUP", parts.len(), SETS_MAX)?;
                let mut sets = vec![0];
                for part in parts {
                    let all = sets.last().copied().unwrap_or(0) | self.key_bits(part)?;
                    sets.push(all);
                }
                sets.reverse();
                Ok(sets)
            }
            GroupElement::Cube(parts) => {
                check_count("CUBE", parts.len(), CUBE_PARTS_MAX)?;
                let mut sets = vec![0];
                for part in parts {
                    let bits = self.key_bits(part)?;
                    sets = sets.iter().flat_map(|set| [set | bits, *set]).collect();
                }
                Ok(sets)
            }
            GroupElement::Sets(elements) => {
                let mut sets = Vec::new();
                for element in elements {
                    sets.extend(self.element_sets(element)?);
                    check_count("GROUPING SETS", sets.len(), SETS_MAX)?;
                }
                Ok(sets)
            }
        }
    }

    fn key_bits(&mut self, keys: &[ast::Expr]) -> Result<u64> {
        keys.iter().try_fold(0, |bits, key| Ok(bits | self.key_bit(key)?))
    }

    /// The bit of a key, which becomes one of the grouping's keys unless it is one already.
    fn key_bit(&mut self, expr: &ast::Expr) -> Result<u64> {
        let key = self.bind_group_key(expr)?;
        let known = self.block().keys.iter().position(|(_, known)| *known == key);
        let at = match known {
            Some(at) => at,
            None => {
                let at = self.block().keys.len();
                check_count("GROUPING SETS", at + 1, GroupSets::KEYS_MAX)?;
                self.add_group_key(key);
                at
            }
        };
        Ok(1 << at)
    }

    fn add_group_key(&mut self, expr: Expr) {
        // A column of an outer row gets a register of its own: that of the outer row is read, not set.
        // In ROLLUP each of two equal keys is NULL on its own level.
        let is_taken = |column: Register| {
            self.blocks.last().is_some_and(|block| block.keys.iter().any(|(key, _)| *key == column))
        };
        let own = expr.as_column().filter(|column| self.block_column_name(*column).is_some());
        let own = own.filter(|column| !is_taken(*column));
        let register = match own {
            Some(register) => register,
            None => self.new_register(),
        };
        let block = self.block();
        block.keys.push((register, expr));
        if block.grouping.len() < block.keys.len() {
            block.grouping.push(None);
        }
    }

    fn bind_group_key(&mut self, expr: &ast::Expr) -> Result<Expr> {
        let key = self.bind_group_expr(expr)?;
        if let Expr::Row(items) = &key {
            bail!(OPERAND_COLUMNS, 1.min(items.len()));
        }
        Ok(key)
    }

    fn bind_group_expr(&mut self, expr: &ast::Expr) -> Result<Expr> {
        let bound = match self.ordinal(expr)? {
            Some(bound) => bound,
            None => self.bind_group_name(expr)?,
        };
        let block = self.blocks.last().expect("inside a block");
        let subqueries = &self.subqueries;
        let is_grouping = |node: &Expr| {
            let mut wanted = block.wanted_grouping.iter();
            wanted.any(|(_, _, register)| node.as_column() == Some(*register))
        };
        if bound.any(&mut |node| is_grouping(node)) {
            bail!(WRONG_GROUP_FIELD, "GROUPING function");
        }
        if reads_aggregate(block, &bound, subqueries) || reads_window(block, &bound, subqueries) {
            let name = String::from_utf8_lossy(expr.span.of(&self.source)).into_owned();
            bail!(WRONG_GROUP_FIELD, name);
        }
        // One of a block around this one, written here, has no name.
        let around = &self.blocks[..self.blocks.len() - 1];
        if around.iter().any(|block| reads_aggregate(block, &bound, &self.subqueries)) {
            bail!(WRONG_GROUP_FIELD, "???");
        }
        Ok(bound)
    }

    /// Binds an expression of GROUP BY. A name that several tables have means an item of the select list, if there is one.
    fn bind_group_name(&mut self, expr: &ast::Expr) -> Result<Expr> {
        let ast::ExprKind::Column(name) = &expr.kind else { return self.bind_expr(expr) };
        match self.bind_expr(expr) {
            Err(error) if error.code() == ErrorCode::NON_UNIQ_ERROR && name.table.is_none() => {
                let listed = self.resolve_listed(self.blocks.len() - 1, name)?;
                let Some(bound) = listed else { return Err(error) };
                self.spell_listed(name, &bound);
                Ok(bound)
            }
            bound => bound,
        }
    }
}

fn check_count(word: &str, count: usize, max: usize) -> Result<()> {
    if count > max {
        bail!(INVALID_NO_OF_ARGS, word, count, max);
    }
    Ok(())
}
