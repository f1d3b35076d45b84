//! The well-known text of a reference system.

/// A keyword with a list in brackets.
#[derive(Debug, PartialEq)]
pub struct Node<'a> {
    /// Before the bracket.
    pub keyword: &'a str,
    /// In the brackets.
    pub items: Vec<Item<'a>>,
}

/// What may be in the list.
#[derive(Debug, PartialEq)]
pub enum Item<'a> {
    /// A text in quotes, as it is between them.
    Text(&'a str),
    /// A number.
    Number(f64),
    /// A word without a list, like a direction.
    Word(&'a str),
    /// A keyword with its list.
    Node(Node<'a>),
}

/// The deepest nesting of a text that is read.
const DEPTH_MAX: usize = 16;

impl<'a> Node<'a> {
    /// Reads a definition; `None` when it is none.
    pub fn read(text: &'a str) -> Option<Node<'a>> {
        let mut rest = text;
        match item(&mut rest, 0)? {
            Item::Node(node) if rest.trim().is_empty() => Some(node),
            Item::Node(_) | Item::Text(_) | Item::Number(_) | Item::Word(_) => None,
        }
    }

    /// The nodes with this keyword in the list.
    pub fn all(&self, keyword: &str) -> impl Iterator<Item = &Node<'a>> {
        self.items.iter().filter_map(move |item| match item {
            Item::Node(node) if node.keyword.eq_ignore_ascii_case(keyword) => Some(node),
            Item::Node(_) | Item::Text(_) | Item::Number(_) | Item::Word(_) => None,
        })
    }

    /// The first of them.
    pub fn one(&self, keyword: &str) -> Option<&Node<'a>> {
        self.all(keyword).next()
    }

    /// The numbers of the list.
    pub fn numbers(&self) -> impl Iterator<Item = f64> {
        self.items.iter().filter_map(|item| match item {
            Item::Number(number) => Some(*number),
            Item::Node(_) | Item::Text(_) | Item::Word(_) => None,
        })
    }

    /// The number that the EPSG dataset has for it.
    pub fn code(&self) -> Option<u32> {
        let [Item::Text("EPSG"), Item::Text(code)] = &self.one("AUTHORITY")?.items[..] else {
            return None;
        };
        code.parse().ok()
    }
}

fn item<'a>(rest: &mut &'a str, depth: usize) -> Option<Item<'a>> {
    *rest = rest.trim_start();
    if let Some(quoted) = rest.strip_prefix('"') {
        let (text, after) = quoted.split_once('"')?;
        *rest = after;
        return Some(Item::Text(text));
    }
    let end = rest.find(['[', ']', ',']).unwrap_or(rest.len());
    let (word, after) = rest.split_at(end);
    let word = word.trim_end();
    *rest = after;
    if !rest.starts_with('[') {
        return match word.parse() {
            Ok(number) => Some(Item::Number(number)),
            Err(_) => (!word.is_empty()).then_some(Item::Word(word)),
        };
    }
    if depth == DEPTH_MAX {
        return None;
    }
    let mut items = Vec::new();
    loop {
        // The bracket or the comma.
        *rest = &rest[1..];
        items.push(item(rest, depth + 1)?);
        *rest = rest.trim_start();
        match rest.as_bytes().first()? {
            b',' => {}
            b']' => {
                *rest = &rest[1..];
                return Some(Item::Node(Node { keyword: word, items }));
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DEPTH_MAX, Item, Node};

    #[test]
    fn a_definition_is_read() {
        let node = Node::read("A[\"b\",C[1,-2.5,N],AUTHORITY[\"EPSG\",\"7\"]]").unwrap();
        assert_eq!(node.items[0], Item::Text("b"));
        assert_eq!(node.code(), Some(7));
        let inner = node.one("c").unwrap();
        assert_eq!(inner.numbers().collect::<Vec<_>>(), [1.0, -2.5]);
        assert_eq!(inner.items[2], Item::Word("N"));
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in ["", "A", "A[", "A[]", "A[1", "A[1]]", "A[1]B", "A[\"b]", "A[1,]", "\"a\""] {
            assert_eq!(Node::read(text), None, "{text}");
        }
        let nested = |depth: usize| format!("{}1{}", "A[".repeat(depth), "]".repeat(depth));
        assert!(Node::read(&nested(DEPTH_MAX)).is_some());
        assert_eq!(Node::read(&nested(DEPTH_MAX + 1)), None);
    }
}
