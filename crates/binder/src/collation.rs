//! Which collation an operation works in: coercibility of expressions and how several are combined (error 1267 otherwise).

use std::collections::BTreeMap;

use charset::Encoding;
use errors::{Error, Result, err};
use plan::{CastKind, Expr, Register};
use types::{CollationId, TextSource, TypeKind};

use crate::typing::is_stringy;

/// The coercibility of an expression; smaller wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Coercibility {
    Explicit = 0,
    /// Operands that do not agree; only COLLATE can still decide.
    Undecided = 1,
    Implicit = 2,
    SystemConstant = 3,
    Coercible = 4,
    Numeric = 5,
    Ignorable = 6,
}

impl Coercibility {
    /// Its name in messages.
    fn name(self) -> &'static str {
        match self {
            Coercibility::Explicit => "EXPLICIT",
            Coercibility::Undecided => "NONE",
            Coercibility::Implicit => "IMPLICIT",
            Coercibility::SystemConstant => "SYSCONST",
            Coercibility::Coercible => "COERCIBLE",
            Coercibility::Numeric => "NUMERIC",
            Coercibility::Ignorable => "IGNORABLE",
        }
    }
}

/// The collation of columns declared in latin1: latin1 gives way to Unicode.
const STANDS_FOR_LATIN1: &str = "utf8mb4_swedish_ci";

/// The operation of columns of a set operation.
pub(crate) const UNION: &str = "UNION";

/// What decides the coercibility of columns and constants.
pub(crate) struct Coercibilities {
    /// The connection's collation, which literals have.
    pub(crate) connection: CollationId,
    /// Columns of derived tables that are no columns of tables: they have that of the expression that they show.
    shown: BTreeMap<Register, Coercibility>,
}

impl Coercibilities {
    /// Of a statement on a connection with this collation.
    pub(crate) fn new(connection: CollationId) -> Coercibilities {
        Coercibilities { connection, shown: BTreeMap::new() }
    }

    /// Column `register` of a derived table shows these expressions, of the blocks of a set operation.
    pub(crate) fn show<'e>(
        &mut self,
        register: Register,
        exprs: impl IntoIterator<Item = &'e Expr>,
    ) {
        let exprs = exprs.into_iter().filter(|expr| is_stringy(&expr.ty()));
        let least = exprs.map(|expr| coercibility(expr, self)).min();
        if let Some(least) = least.filter(|least| *least > Coercibility::Implicit) {
            self.shown.insert(register, least);
        }
    }
}

/// The coercibility of an expression.
pub(crate) fn coercibility(expr: &Expr, known: &Coercibilities) -> Coercibility {
    let ty = expr.ty();
    let of = |expr: &Expr| coercibility(expr, known);
    if ty.kind == TypeKind::Null {
        return Coercibility::Ignorable;
    }
    if !is_stringy(&ty) && ty.kind != TypeKind::Json {
        return Coercibility::Numeric;
    }
    match expr {
        Expr::Collate { .. } => Coercibility::Explicit,
        // Literals and clients' parameters have the connection's collation: this is a variable of a routine, which counts as a column does.
        Expr::Parameter { ty, .. }
            if is_stringy(ty)
                && ty.collation != known.connection
                && ty.collation != CollationId::BINARY =>
        {
            Coercibility::Implicit
        }
        Expr::Literal { .. } | Expr::Parameter { .. } => Coercibility::Coercible,
        Expr::SystemVariable { .. } => Coercibility::SystemConstant,
        Expr::Column { register, .. } => {
            known.shown.get(register).copied().unwrap_or(Coercibility::Implicit)
        }
        Expr::Stored { .. }
        | Expr::Match { .. }
        | Expr::UserVariable { .. }
        | Expr::AssignUserVariable { .. }
        | Expr::Subquery { .. }
        | Expr::Row(_) => Coercibility::Implicit,
        Expr::Cast { operand, kind, .. } => match kind {
            CastKind::Explicit => Coercibility::Implicit,
            CastKind::Implicit
            | CastKind::Compared(_)
            | CastKind::BesideDate
            | CastKind::NumberBeside(_)
            | CastKind::BesideYear
            | CastKind::Exact(_)
            | CastKind::Fitting { .. }
            | CastKind::TimestampToLocal
            | CastKind::TimestampToUtc => match of(operand) {
                Coercibility::Numeric | Coercibility::Ignorable => Coercibility::Coercible,
                other => other,
            },
        },
        Expr::Function { function, args, .. } if args.is_empty() => match function.traits.text {
            TextSource::System => Coercibility::SystemConstant,
            TextSource::Value => Coercibility::Coercible,
        },
        Expr::Function { args, .. } => {
            args.iter().map(of).min().map_or(Coercibility::Coercible, |least| match least {
                Coercibility::Numeric | Coercibility::Ignorable => Coercibility::Coercible,
                other => other,
            })
        }
        Expr::Case { branches, otherwise, .. } => branches
            .iter()
            .map(|(_, then)| then)
            .chain(otherwise.as_deref())
            .map(of)
            .min()
            .unwrap_or(Coercibility::Coercible),
        Expr::FirstNotNull { parts, .. } => {
            parts.iter().map(of).min().unwrap_or(Coercibility::Coercible)
        }
        Expr::Held { values, rest } => {
            let value = if let Expr::Case { otherwise: Some(otherwise), .. } = &**rest
                && let Expr::HeldValue { index, .. } = &**otherwise
            {
                values.get(*index)
            } else {
                None
            };
            of(value.unwrap_or(rest))
        }
        Expr::HeldValue { .. } => Coercibility::Implicit,
        Expr::Unary { .. }
        | Expr::Binary { .. }
        | Expr::Between { .. }
        | Expr::InList { .. }
        | Expr::Like { .. } => Coercibility::Numeric,
    }
}

/// A collation and its coercibility.
#[derive(Clone, Copy)]
struct Wanted {
    collation: CollationId,
    strength: Coercibility,
    ascii: bool,
}

fn wanted(expr: &Expr, known: &Coercibilities) -> Wanted {
    let ty = expr.ty();
    let strength = coercibility(expr, known);
    let collation = match strength {
        Coercibility::Numeric | Coercibility::Ignorable => known.connection,
        _ if ty.kind == TypeKind::Json => CollationId::UTF8MB4_BIN,
        _ => ty.collation,
    };
    let ascii = match expr {
        Expr::Literal { value: types::Value::Bytes(bytes), .. } => {
            bytes.is_ascii() && charset::collation_or_binary(collation).charset.min_length() == 1
        }
        _ => {
            matches!(strength, Coercibility::Numeric | Coercibility::Ignorable)
                || charset::collation_or_binary(collation).charset.encoding == Encoding::Ascii
        }
    };
    Wanted { collation, strength, ascii }
}

/// Whether `left` is Unicode and so takes every text of `right`.
fn takes_by_unicode(left: Wanted, right: Wanted) -> bool {
    let (a, b) = (
        charset::collation_or_binary(left.collation).charset,
        charset::collation_or_binary(right.collation).charset,
    );
    // Of the encodings of Unicode these take the others, and utf16 takes none.
    let takes_all = matches!(a.name, "utf8mb4" | "utf32");
    a.is_unicode()
        && (left.strength < right.strength
            || left.strength == right.strength && (!b.is_unicode() || takes_all))
}

/// Whether `right` is known to have only characters of seven bits, which every other set takes.
fn takes_ascii(left: Wanted, right: Wanted) -> bool {
    let is_unicode = |one: Wanted| charset::collation_or_binary(one.collation).charset.is_unicode();
    right.ascii
        && (left.strength < right.strength
            || left.strength == right.strength
                && !left.ascii
                && !(is_unicode(left) && is_unicode(right)))
}

/// Operands of one character set whose collations differ, which a following COLLATE can still decide: they have the binary
/// collation of the set.
fn undecided(charset: &str) -> Wanted {
    let collation = charset::collation_by_name(&format!("{charset}_bin"));
    let collation = collation.map_or(CollationId::BINARY, |collation| collation.id);
    Wanted { collation, strength: Coercibility::Undecided, ascii: false }
}

/// Operands whose character sets cannot be combined.
const APART: Wanted =
    Wanted { collation: CollationId::BINARY, strength: Coercibility::Undecided, ascii: false };

/// The rule of an operation for operands of one character set whose collations differ.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Differing {
    /// It compares: an error.
    Refuse,
    /// It returns a text, which has the binary collation.
    Binary,
}

/// The collation of two operands; `None`: they have two different COLLATE.
fn agree(a: Wanted, b: Wanted) -> Option<Wanted> {
    let (x, y) =
        (charset::collation_or_binary(a.collation), charset::collation_or_binary(b.collation));
    if x.charset.name != y.charset.name {
        return Some(agree_across_charsets(a, b));
    }
    if a.strength != b.strength {
        return Some(if a.strength < b.strength { a } else { b });
    }
    if a.collation == b.collation {
        return Some(Wanted { ascii: a.ascii && b.ascii, ..a });
    }
    match (x.name == STANDS_FOR_LATIN1, y.name == STANDS_FOR_LATIN1) {
        (true, false) if a.strength > Coercibility::Explicit => return Some(b),
        (false, true) if a.strength > Coercibility::Explicit => return Some(a),
        _ => {}
    }
    match (a.strength, x.is_bin(), y.is_bin()) {
        (Coercibility::Explicit, ..) => None,
        (_, true, _) => Some(a),
        (_, _, true) => Some(b),
        _ => Some(undecided(x.charset.name)),
    }
}

fn agree_across_charsets(a: Wanted, b: Wanted) -> Wanted {
    let gives_way = |strength| strength >= Coercibility::SystemConstant;
    let explicit = |one: Wanted| one.strength == Coercibility::Explicit;
    if a.collation == CollationId::BINARY {
        if a.strength <= b.strength { a } else { b }
    } else if b.collation == CollationId::BINARY {
        if b.strength <= a.strength { b } else { a }
    } else if explicit(a) != explicit(b) {
        if explicit(a) { a } else { b }
    } else if explicit(a) {
        APART
    } else if takes_by_unicode(a, b) || !takes_by_unicode(b, a) && takes_ascii(a, b) {
        a
    } else if takes_by_unicode(b, a) || takes_ascii(b, a) {
        b
    } else if a.strength < b.strength && gives_way(b.strength) {
        a
    } else if b.strength < a.strength && gives_way(a.strength) {
        b
    } else {
        APART
    }
}

/// The collation in which an operation on these expressions works. Expressions that are not text are converted, so they never
/// decide; without any text the result is the connection's collation.
pub(crate) fn aggregate<'e>(
    exprs: impl IntoIterator<Item = &'e Expr>,
    known: &Coercibilities,
    operation: &str,
    differing: Differing,
) -> Result<CollationId> {
    let mut met: Vec<Wanted> = Vec::new();
    let mut result: Option<Wanted> = None;
    let mut constants = Vec::new();
    let mut exprs = exprs.into_iter();
    while let Some(expr) = exprs.next() {
        if let Expr::Literal { value: types::Value::Bytes(text), ty } = expr
            && ty.is_string()
            && !text.is_ascii()
        {
            constants.push((&**text, ty.collation));
        }
        let next = wanted(expr, known);
        met.push(next);
        if matches!(next.strength, Coercibility::Numeric | Coercibility::Ignorable) {
            continue;
        }
        result = match result.map(|before| agree(before, next)) {
            None => Some(next),
            Some(Some(both)) => Some(both),
            Some(None) => {
                met.extend(exprs.map(|expr| wanted(expr, known)));
                return Err(illegal_mix(&met, operation));
            }
        };
    }
    let Some(result) = result else { return Ok(known.connection) };
    let allowed = differing == Differing::Binary && result.collation != CollationId::BINARY;
    if result.strength == Coercibility::Undecided && !allowed {
        return Err(illegal_mix(&met, operation));
    }
    for (text, from) in constants {
        types::must_convert(text, from, result.collation)?;
    }
    Ok(result.collation)
}

/// 1267, 1270 or 1271, for two, three or more operands.
fn illegal_mix(met: &[Wanted], operation: &str) -> Error {
    let shown: Vec<(&str, &str)> = met
        .iter()
        .map(|one| (charset::collation_or_binary(one.collation).name, one.strength.name()))
        .collect();
    match shown.as_slice() {
        _ if operation == UNION => err!(CANT_AGGREGATE_NCOLLATIONS, operation),
        [a, b] => err!(CANT_AGGREGATE_2COLLATIONS, a.0, a.1, b.0, b.1, operation),
        [a, b, c] => err!(CANT_AGGREGATE_3COLLATIONS, a.0, a.1, b.0, b.1, c.0, c.1, operation),
        _ => err!(CANT_AGGREGATE_NCOLLATIONS, operation),
    }
}
