//! Parses XPath, as far as the reference knows it.

use errors::{Error, ErrorCode, Result};

/// Expressions within each other, and operators one after the other: what bounds the recursion of whoever walks the tree.
const DEPTH_MAX: u32 = 250;
/// Bytes of the rest that a message repeats.
const REST_SHOWN_MAX: usize = 32;

/// Which nodes a step looks at, from each node before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    Itself,
    Child,
    Attribute,
    Parent,
    Ancestor,
    AncestorOrSelf,
    Descendant,
    DescendantOrSelf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// With the operands exchanged.
    fn swapped(self) -> Comparison {
        match self {
            Comparison::Equal | Comparison::NotEqual => self,
            Comparison::Less => Comparison::Greater,
            Comparison::LessOrEqual => Comparison::GreaterOrEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

/// A function with the values it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Not,
    Sum,
    True,
    False,
    Last,
    Count,
    Round,
    Floor,
    Ceiling,
    Boolean,
    Number,
    Concat,
    Contains,
    Position,
    Substring,
    StringLength,
}

/// Name, function, smallest and largest number of arguments.
const FUNCTIONS: &[(&str, Function, usize, usize)] = &[
    ("not", Function::Not, 1, 1),
    ("sum", Function::Sum, 1, 1),
    ("true", Function::True, 0, 0),
    ("false", Function::False, 0, 0),
    ("last", Function::Last, 0, 0),
    ("count", Function::Count, 1, 1),
    ("round", Function::Round, 1, 1),
    ("floor", Function::Floor, 1, 1),
    ("ceiling", Function::Ceiling, 1, 1),
    ("boolean", Function::Boolean, 1, 1),
    ("number", Function::Number, 0, 1),
    ("concat", Function::Concat, 2, 255),
    ("contains", Function::Contains, 2, 2),
    ("position", Function::Position, 0, 0),
    ("substring", Function::Substring, 2, 3),
    ("string-length", Function::StringLength, 0, 1),
];

/// Axes that the reference does not follow lead to children.
const AXES: &[(&str, Axis)] = &[
    ("ancestor", Axis::Ancestor),
    ("ancestor-or-self", Axis::AncestorOrSelf),
    ("attribute", Axis::Attribute),
    ("child", Axis::Child),
    ("descendant", Axis::Descendant),
    ("descendant-or-self", Axis::DescendantOrSelf),
    ("following", Axis::Child),
    ("following-sibling", Axis::Child),
    ("namespace", Axis::Child),
    ("parent", Axis::Parent),
    ("preceding", Axis::Child),
    ("preceding-sibling", Axis::Child),
    ("self", Axis::Itself),
];

const NODE_TYPES: &[&str] = &["comment", "text", "node", "processing-instruction"];

/// A part of a path.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Nodes of an axis with a name, or with any.
    Walk(Axis, Option<Box<str>>),
    /// Those of the nodes for which it holds, or that are at its place.
    Filter(Expr),
}

#[derive(Clone, Debug)]
pub(super) enum Expr {
    Integer(i64),
    /// With the digits after the point.
    Decimal(f64, usize),
    Text(Box<str>),
    UserVariable(Box<str>),
    Root,
    /// The node that a filter looks at.
    Context,
    Path(Box<Expr>, Vec<Step>),
    Union(Box<Expr>, Box<Expr>),
    Negative(Box<Expr>),
    Arithmetic(Arithmetic, Box<Expr>, Box<Expr>),
    Compare(Comparison, Box<Expr>, Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Call(Function, Vec<Expr>),
}

impl Expr {
    /// Whether its value is a set of nodes.
    pub(super) fn is_nodes(&self) -> bool {
        matches!(self, Expr::Root | Expr::Context | Expr::Path(..) | Expr::Union(..))
    }

    /// Whether its value is a truth, so that a filter does not take it for a place.
    pub(super) fn is_truth(&self) -> bool {
        match self {
            Expr::Compare(..) | Expr::And(..) | Expr::Or(..) => true,
            Expr::Call(function, _) => matches!(
                function,
                Function::Not
                    | Function::True
                    | Function::False
                    | Function::Boolean
                    | Function::Contains
            ),
            _ => self.is_nodes(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    End,
    Unknown,
    Slash,
    DoubleSlash,
    Dot,
    DoubleDot,
    At,
    Star,
    Colon,
    Comma,
    Dollar,
    Bar,
    Plus,
    Minus,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    OpenParen,
    CloseParen,
    OpenBracket,
    CloseBracket,
    Integer,
    Decimal,
    Text,
    Ident,
    Function(Function, usize, usize),
    NodeType,
    Axis(Axis),
}

/// Parses an expression.
///
/// # Errors
/// 1105 with the rest that is not understood.
pub(super) fn parse(text: &str) -> Result<Expr> {
    let mut parser =
        Parser { text, start: 0, end: 0, token: Token::End, filters: 0, depth: 0, failure: None };
    parser.bump();
    let parsed = parser.expr(0);
    match parsed {
        Some(expr) if parser.token == Token::End && parser.failure.is_none() => Ok(expr),
        _ => Err(parser.error()),
    }
}

struct Parser<'a> {
    text: &'a str,
    /// The current token.
    start: usize,
    end: usize,
    token: Token,
    /// Filters that the place is within.
    filters: u32,
    depth: u32,
    /// A failure that has a message of its own.
    failure: Option<Error>,
}

fn is_name_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// How strongly an operator binds; `None` for what is none.
fn strength(token: Token, word: &str) -> Option<u32> {
    match token {
        Token::Ident if word.eq_ignore_ascii_case("or") => Some(1),
        Token::Ident if word.eq_ignore_ascii_case("and") => Some(2),
        Token::Equal | Token::NotEqual => Some(3),
        Token::Less | Token::LessOrEqual | Token::Greater | Token::GreaterOrEqual => Some(4),
        Token::Plus | Token::Minus => Some(5),
        Token::Star => Some(6),
        Token::Ident if word.eq_ignore_ascii_case("div") => Some(6),
        Token::Ident if word.eq_ignore_ascii_case("mod") => Some(6),
        _ => None,
    }
}

fn comparison(token: Token) -> Option<Comparison> {
    const COMPARISONS: [(Token, Comparison); 6] = [
        (Token::Equal, Comparison::Equal),
        (Token::NotEqual, Comparison::NotEqual),
        (Token::Less, Comparison::Less),
        (Token::LessOrEqual, Comparison::LessOrEqual),
        (Token::Greater, Comparison::Greater),
        (Token::GreaterOrEqual, Comparison::GreaterOrEqual),
    ];
    COMPARISONS.iter().find(|(known, _)| *known == token).map(|(_, comparison)| *comparison)
}

impl<'a> Parser<'a> {
    fn rest_from(&self, at: usize) -> &'a str {
        self.text.get(at..).unwrap_or_default()
    }

    fn word(&self) -> &'a str {
        self.text.get(self.start..self.end).unwrap_or_default()
    }

    fn shown(&self, at: usize) -> &'a str {
        let rest = self.rest_from(at);
        rest.get(..rest.floor_char_boundary(REST_SHOWN_MAX)).unwrap_or_default()
    }

    fn error(&mut self) -> Error {
        let own = self.failure.take();
        own.unwrap_or_else(|| {
            let message = format!("XPATH syntax error: '{}'", self.shown(self.start));
            Error::new(ErrorCode::UNKNOWN_ERROR, message)
        })
    }

    fn fail<T>(&mut self, message: String) -> Option<T> {
        self.failure.get_or_insert_with(|| Error::new(ErrorCode::UNKNOWN_ERROR, message));
        None
    }

    // --- tokens

    fn bump(&mut self) {
        let rest = self.rest_from(self.end);
        let blanks = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
        self.start = self.end + blanks;
        let (token, length) = self.scan(self.rest_from(self.start));
        self.token = token;
        self.end = self.start + length;
    }

    fn scan(&self, rest: &str) -> (Token, usize) {
        const SIGNS: &[(&str, Token)] = &[
            ("//", Token::DoubleSlash),
            ("..", Token::DoubleDot),
            ("!=", Token::NotEqual),
            ("<=", Token::LessOrEqual),
            (">=", Token::GreaterOrEqual),
            ("/", Token::Slash),
            (".", Token::Dot),
            ("@", Token::At),
            ("*", Token::Star),
            (":", Token::Colon),
            (",", Token::Comma),
            ("$", Token::Dollar),
            ("|", Token::Bar),
            ("+", Token::Plus),
            ("-", Token::Minus),
            ("=", Token::Equal),
            ("<", Token::Less),
            (">", Token::Greater),
            ("(", Token::OpenParen),
            (")", Token::CloseParen),
            ("[", Token::OpenBracket),
            ("]", Token::CloseBracket),
        ];
        let Some(first) = rest.chars().next() else { return (Token::End, 0) };
        if is_name_start(first) {
            let length = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(length);
            let token = name_token(word, after);
            let colons = if matches!(token, Token::Axis(_)) { 2 } else { 0 };
            return (token, length + colons);
        }
        if first.is_ascii_digit() {
            let digits =
                |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            let whole = digits(rest);
            let fraction = rest.get(whole..).and_then(|after| after.strip_prefix('.'));
            return match fraction {
                Some(fraction) => (Token::Decimal, whole + 1 + digits(fraction)),
                None => (Token::Integer, whole),
            };
        }
        if matches!(first, '"' | '\'') {
            return match rest.get(1..).and_then(|inner| inner.find(first)) {
                Some(length) => (Token::Text, length + 2),
                None => (Token::Unknown, 0),
            };
        }
        let sign = SIGNS.iter().find(|(sign, _)| rest.starts_with(sign));
        sign.map_or((Token::Unknown, 0), |(sign, token)| (*token, sign.len()))
    }

    fn eat(&mut self, token: Token) -> Option<()> {
        if self.token != token {
            return None;
        }
        self.bump();
        Some(())
    }

    // --- expressions

    /// One more expression within another, or operator after another.
    fn deeper(&mut self) -> Option<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let limit = DEPTH_MAX;
            return self.fail(format!("XPATH error: more than {limit} parts within each other"));
        }
        Some(())
    }

    /// Operands with operators that bind more strongly than `floor`.
    fn expr(&mut self, floor: u32) -> Option<Expr> {
        let depth = self.depth;
        self.deeper()?;
        let mut left = self.unary()?;
        while let Some(bound) = strength(self.token, self.word()).filter(|bound| *bound > floor) {
            self.deeper()?;
            let (token, word, at) = (self.token, self.word().to_ascii_lowercase(), self.start);
            self.bump();
            let right = self.expr(bound)?;
            left = self.operation(token, &word, at, left, right)?;
        }
        self.depth = depth;
        Some(left)
    }

    fn operation(
        &mut self,
        token: Token,
        word: &str,
        at: usize,
        left: Expr,
        right: Expr,
    ) -> Option<Expr> {
        if let Some(operator) = comparison(token) {
            if left.is_nodes() && right.is_nodes() {
                let rest = self.shown(at);
                return self.fail(format!(
                    "XPATH error: comparison of two nodesets is not supported: '{rest}'"
                ));
            }
            return Some(match right.is_nodes() {
                true => Expr::Compare(operator.swapped(), Box::new(right), Box::new(left)),
                false => Expr::Compare(operator, Box::new(left), Box::new(right)),
            });
        }
        let (left, right) = (Box::new(left), Box::new(right));
        let operator = if token == Token::Ident { word } else { "" };
        Some(if token == Token::Plus {
            Expr::Arithmetic(Arithmetic::Add, left, right)
        } else if token == Token::Minus {
            Expr::Arithmetic(Arithmetic::Subtract, left, right)
        } else if token == Token::Star {
            Expr::Arithmetic(Arithmetic::Multiply, left, right)
        } else if operator == "div" {
            Expr::Arithmetic(Arithmetic::Divide, left, right)
        } else if operator == "mod" {
            Expr::Arithmetic(Arithmetic::Modulo, left, right)
        } else if operator == "and" {
            Expr::And(left, right)
        } else {
            Expr::Or(left, right)
        })
    }

    fn unary(&mut self) -> Option<Expr> {
        let mut signs = 0;
        while self.token == Token::Minus {
            self.deeper()?;
            self.bump();
            signs += 1;
        }
        let mut value = self.union()?;
        for _ in 0..signs {
            value = Expr::Negative(Box::new(value));
        }
        Some(value)
    }

    fn union(&mut self) -> Option<Expr> {
        let mut left = self.path()?;
        while self.token == Token::Bar {
            self.deeper()?;
            self.bump();
            if !left.is_nodes() {
                return None;
            }
            let right = self.path()?;
            if !right.is_nodes() {
                return None;
            }
            left = Expr::Union(Box::new(left), Box::new(right));
        }
        Some(left)
    }

    /// A path, or a value; of a value that is a set of nodes a path may go on.
    fn path(&mut self) -> Option<Expr> {
        let mut steps = Vec::new();
        if matches!(self.token, Token::Slash | Token::DoubleSlash) {
            let any_depth = self.token == Token::DoubleSlash;
            self.bump();
            if any_depth || self.begins_step() {
                self.steps(any_depth, &mut steps)?;
            }
            return Some(match steps.is_empty() {
                true => Expr::Root,
                false => Expr::Path(Box::new(Expr::Root), steps),
            });
        }
        let from = if self.filters > 0 { Expr::Context } else { Expr::Root };
        if self.begins_step() {
            self.steps(false, &mut steps)?;
            return Some(match steps.is_empty() {
                true => from,
                false => Expr::Path(Box::new(from), steps),
            });
        }
        let value = self.primary()?;
        if value.is_nodes() && matches!(self.token, Token::Slash | Token::DoubleSlash) {
            let any_depth = self.token == Token::DoubleSlash;
            self.bump();
            self.steps(any_depth, &mut steps)?;
            return Some(Expr::Path(Box::new(value), steps));
        }
        Some(value)
    }

    fn begins_step(&self) -> bool {
        matches!(
            self.token,
            Token::Dot
                | Token::DoubleDot
                | Token::At
                | Token::Star
                | Token::Ident
                | Token::NodeType
                | Token::Axis(_)
        )
    }

    fn steps(&mut self, mut any_depth: bool, steps: &mut Vec<Step>) -> Option<()> {
        loop {
            if any_depth {
                steps.push(Step::Walk(Axis::DescendantOrSelf, None));
            }
            self.step(steps)?;
            any_depth = self.token == Token::DoubleSlash;
            if !any_depth && self.token != Token::Slash {
                return Some(());
            }
            self.bump();
        }
    }

    fn step(&mut self, steps: &mut Vec<Step>) -> Option<()> {
        // It adds nothing: the nodes stay what they are, with their places.
        if self.token == Token::Dot {
            self.bump();
            return Some(());
        }
        if self.token == Token::DoubleDot {
            self.bump();
            steps.push(Step::Walk(Axis::Parent, None));
            return Some(());
        }
        let mut axis = Axis::Child;
        if self.token == Token::At {
            self.bump();
            axis = Axis::Attribute;
        } else if let Token::Axis(named) = self.token {
            self.bump();
            axis = named;
        }
        match self.token {
            Token::Star => {
                self.bump();
                steps.push(Step::Walk(axis, None));
            }
            // The reference takes no step for the type of a node.
            Token::NodeType => {
                self.bump();
                self.eat(Token::OpenParen)?;
                // The error of a value there names what follows it.
                if matches!(self.token, Token::Integer | Token::Text) {
                    self.bump();
                    return None;
                }
                self.eat(Token::CloseParen)?;
            }
            Token::Ident => {
                let start = self.start;
                let mut end = self.end;
                self.bump();
                if self.token == Token::Colon {
                    self.bump();
                    end = self.end;
                    self.eat(Token::Ident)?;
                }
                let name = self.text.get(start..end).unwrap_or_default();
                steps.push(Step::Walk(axis, Some(name.into())));
            }
            _ => return None,
        }
        while self.token == Token::OpenBracket {
            self.bump();
            self.filters += 1;
            let filter = self.expr(0)?;
            self.filters -= 1;
            self.eat(Token::CloseBracket)?;
            steps.push(Step::Filter(filter));
        }
        Some(())
    }

    fn primary(&mut self) -> Option<Expr> {
        let word = self.word();
        let value = match self.token {
            Token::OpenParen => {
                self.bump();
                let inner = self.expr(0)?;
                self.eat(Token::CloseParen)?;
                return Some(inner);
            }
            Token::Text => Expr::Text(word.get(1..word.len() - 1).unwrap_or_default().into()),
            // Digits beyond 64 bits are all ones.
            Token::Integer => Expr::Integer(word.parse::<u64>().unwrap_or(u64::MAX) as i64),
            Token::Decimal => {
                let digits = word.split_once('.').map_or(0, |(_, fraction)| fraction.len());
                Expr::Decimal(word.parse().unwrap_or(0.0), digits)
            }
            Token::Dollar => return self.variable(),
            Token::Function(function, min, max) => return self.call(function, min, max),
            _ => return None,
        };
        self.bump();
        Some(value)
    }

    /// `$@name`. Names of local variables are not known here.
    fn variable(&mut self) -> Option<Expr> {
        let at = self.start;
        self.bump();
        let is_user = self.token == Token::At;
        if is_user {
            self.bump();
        }
        if self.token != Token::Ident {
            return None;
        }
        if !is_user {
            let rest = self.shown(at);
            return self.fail(format!("Unknown XPATH variable at: '{rest}'"));
        }
        let name = self.word().into();
        self.bump();
        Some(Expr::UserVariable(name))
    }

    fn call(&mut self, function: Function, min: usize, max: usize) -> Option<Expr> {
        self.bump();
        self.eat(Token::OpenParen)?;
        let mut arguments = Vec::new();
        while arguments.len() < max {
            if arguments.len() >= min && self.token == Token::CloseParen {
                break;
            }
            arguments.push(self.expr(0)?);
            if self.token != Token::Comma {
                // Too few arguments: another one is wanted.
                if arguments.len() < min {
                    return None;
                }
                break;
            }
            self.bump();
        }
        self.eat(Token::CloseParen)?;
        let of_nodes = matches!(function, Function::Count | Function::Sum);
        let of_filter = matches!(function, Function::Position | Function::Last)
            || (function == Function::StringLength && arguments.is_empty());
        if (of_nodes && !arguments.iter().all(Expr::is_nodes)) || (of_filter && self.filters == 0) {
            return None;
        }
        if arguments.is_empty() && matches!(function, Function::Number | Function::StringLength) {
            arguments.push(if self.filters > 0 { Expr::Context } else { Expr::Root });
        }
        Some(Expr::Call(function, arguments))
    }
}

/// A word is a function, an axis or the type of a node by what follows it without a blank.
fn name_token(word: &str, after: &str) -> Token {
    if after.starts_with('(') {
        let same = |name: &str| name.eq_ignore_ascii_case(word);
        if NODE_TYPES.iter().any(|name| same(name)) {
            return Token::NodeType;
        }
        if let Some((_, function, min, max)) = FUNCTIONS.iter().find(|(name, ..)| same(name)) {
            return Token::Function(*function, *min, *max);
        }
    }
    if after.starts_with("::") {
        let known = AXES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
        if let Some((_, axis)) = known {
            return Token::Axis(*axis);
        }
    }
    Token::Ident
}
