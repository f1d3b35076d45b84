//! Texts beside binary strings. Every text is UTF-8 inside; a binary string is bytes of its own. Where an operation works on bytes a
//! text takes part with the bytes of its character set, and where it works on texts bytes are those of the texts' set.

use errors::Result;
use plan::{CastKind, Expr};
use plugin_api::FunctionRole;
use types::{CollationId, DataType, SqlBytes, Value};

use crate::binder::Binder;
use crate::expr::to_text;
use crate::typing::is_stringy;

/// Whether values of a type have other bytes inside than in their character set.
fn differs_inside(ty: &DataType) -> bool {
    is_stringy(ty)
        && ty.collation != CollationId::BINARY
        && !charset::collation_or_binary(ty.collation).charset.keeps_utf8()
}

impl Binder<'_> {
    /// Text as the bytes in its own character set; other values unchanged.
    pub(crate) fn encoded(&mut self, expr: Expr) -> Result<Expr> {
        let ty = expr.ty();
        if !differs_inside(&ty) {
            return Ok(expr);
        }
        let text =
            if ty.is_text() { expr } else { to_text(expr, ty.collation, CastKind::Implicit) };
        let binary = self.ascii("binary");
        self.function(FunctionRole::ConvertUsing, vec![text, binary])
    }

    /// An operand of an operation on texts in `collation`.
    pub(crate) fn operand_in(&mut self, expr: Expr, collation: CollationId) -> Result<Expr> {
        if collation == CollationId::BINARY {
            return self.encoded(expr);
        }
        let charset = charset::collation_or_binary(collation).charset;
        if charset.is_utf8() {
            return Ok(expr);
        }
        let ty = expr.ty();
        if let Expr::Parameter { .. } = &expr
            && ty.is_text()
        {
            let to = DataType { collation, ..ty };
            let kind = CastKind::Fitting { placeholder: self.has_placeholders };
            return Ok(Expr::Cast { operand: Box::new(expr), kind, ty: to });
        }
        if !ty.is_binary() {
            return Ok(expr);
        }
        if let Expr::Literal { value: Value::Bytes(bytes), .. } = &expr
            && let units = charset.whole_units(bytes)
            && charset.find_malformed(&units).is_none()
        {
            let text = SqlBytes::from(charset.decode(&units).bytes);
            let ty = DataType::varchar(ty.length, collation).with_nullable(false);
            return Ok(Expr::literal(Value::Bytes(text), ty));
        }
        let name = self.ascii(charset.name);
        self.function(FunctionRole::ConvertUsing, vec![expr, name])
    }

    /// The operands of one comparison, which works in `collation` when they are texts.
    pub(crate) fn operands_in<const N: usize>(
        &mut self,
        operands: [Expr; N],
        collation: CollationId,
    ) -> Result<[Expr; N]> {
        if !operands.iter().all(|operand| is_stringy(&operand.ty())) {
            return Ok(operands);
        }
        let mut failed = None;
        let changed = operands.map(|operand| match self.operand_in(operand, collation) {
            Ok(operand) => operand,
            Err(error) => {
                failed = Some(error);
                Expr::literal(Value::Null, DataType::null())
            }
        });
        failed.map_or(Ok(changed), Err)
    }

    /// A text argument of a function that works on another text, of `collation`.
    ///
    /// # Errors
    /// 3854 for a constant that the character set of that collation cannot take; when it runs, for other values.
    pub(crate) fn follower(&mut self, expr: Expr, collation: CollationId) -> Result<Expr> {
        if collation == CollationId::BINARY {
            return self.encoded(expr);
        }
        let ty = expr.ty();
        let charset = charset::collation_or_binary(collation).charset;
        let from = charset::collation_or_binary(ty.collation).charset;
        if from.name == charset.name || !ty.is_binary() && charset.is_utf8() {
            return Ok(expr);
        }
        if let Expr::Literal { value: Value::Bytes(bytes), .. } = &expr {
            types::must_convert(bytes, ty.collation, collation)?;
            return if ty.is_binary() { self.joined_in(expr, collation) } else { Ok(expr) };
        }
        let text = if ty.is_enum_or_set() {
            to_text(expr, ty.collation, CastKind::Implicit)
        } else {
            expr
        };
        let placeholder = self.has_placeholders && matches!(text, Expr::Parameter { .. });
        let kind = CastKind::Fitting { placeholder };
        let to = DataType::varchar(text.ty().length, collation).with_nullable(text.ty().nullable);
        Ok(Expr::Cast { operand: Box::new(text), kind, ty: to })
    }

    /// A text argument of a call whose result is in `collation`.
    pub(crate) fn joined_in(&mut self, expr: Expr, collation: CollationId) -> Result<Expr> {
        let ty = expr.ty();
        if collation == CollationId::BINARY || !ty.is_binary() {
            return self.operand_in(expr, collation);
        }
        if let Expr::Literal { value: Value::Bytes(bytes), .. } = &expr
            && charset::collation_or_binary(collation).charset.is_utf8()
        {
            let length = charset::char_length(bytes) as u32;
            let ty = DataType::varchar(length, collation).with_nullable(false);
            return Ok(Expr::literal(Value::Bytes(bytes.clone()), ty));
        }
        let name = self.ascii(charset::collation_or_binary(collation).charset.name);
        self.function(FunctionRole::ConvertUsing, vec![expr, name])
    }
}
