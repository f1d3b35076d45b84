//! Full-text search: the words of a text, and the entries that an index keeps of them. Described in docs/format/fulltext.md: a change
//! to a word or its key changes the format.
//!
//! Independent of queries, tables and ranks.

mod marks;

use std::borrow::Cow;
use std::collections::BTreeMap;

use charset::{Collation, collation_or_binary};

use self::marks::is_mark;
use crate::key::{encode_part, encode_text_prefix};
use crate::{CollationId, DataType, TypeKind, Value};

/// Characters of the shortest word that is indexed (`innodb_ft_min_token_size`).
pub const WORD_CHARS_MIN: usize = 3;
/// Characters of the longest (`innodb_ft_max_token_size`).
pub const WORD_CHARS_MAX: usize = 84;
/// Significant bytes of a word's key: with a row's locator it must fit the key of an entry.
const WORD_KEY_BYTES_MAX: usize = 480;
/// Longest locator of a row that fits the key of an entry, where all its bytes have to be escaped.
pub const LOCATOR_BYTES_MAX: usize = 1024;

/// Words that no index has, as `INNODB_FT_DEFAULT_STOPWORD` lists them.
pub const STOPWORDS: [&str; 36] = [
    "a", "about", "an", "are", "as", "at", "be", "by", "com", "de", "en", "for", "from", "how",
    "i", "in", "is", "it", "la", "of", "on", "or", "that", "the", "this", "to", "was", "what",
    "when", "where", "who", "will", "with", "und", "the", "www",
];

/// The pieces of a text between separators, including those that are too short or too long to be indexed.
///
/// Letters with their marks, digits and `_` make words, as the reference's engine has it: an apostrophe separates.
pub fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !is_of_word(letter)).filter(|token| !token.is_empty())
}

fn is_of_word(letter: char) -> bool {
    match letter {
        '_' => true,
        _ if letter.is_ascii() => letter.is_ascii_alphanumeric(),
        _ => letter.is_alphanumeric() || is_mark(letter),
    }
}

/// Where the words of a text begin and end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WordParser {
    /// Separators are between them.
    #[default]
    Separated,
    /// Every so many characters in a row are a word, for texts of languages that do not separate words (`WITH PARSER ngram`).
    Grams(u8),
}

/// The pieces of `size` characters of a text. A character of ASCII that is of no word separates, any other one belongs to pieces.
fn grams(text: &str, size: usize) -> impl Iterator<Item = &str> {
    let is_separator = |letter: char| letter.is_ascii() && !is_of_word(letter);
    text.split(is_separator).flat_map(move |run| {
        let ends = run.char_indices().map(|(at, _)| at).chain([run.len()]).skip(size);
        run.char_indices().zip(ends).map(|((start, _), end)| &run[start..end])
    })
}

/// Finds words of one collation.
#[derive(Clone, Debug)]
pub struct Analyzer {
    parser: WordParser,
    collation: &'static Collation,
    /// Words are case-insensitive even when the collation is case-sensitive, as in the reference's engine; only `_bin` is an exception.
    lowers: bool,
    /// Keys of the stopwords, sorted.
    stopwords: Vec<Vec<u8>>,
}

impl Analyzer {
    /// For texts of `collation` with separated words.
    pub fn new(collation: CollationId) -> Analyzer {
        Analyzer::of(collation, WordParser::Separated)
    }

    /// For texts of `collation`.
    pub fn of(collation: CollationId, parser: WordParser) -> Analyzer {
        let collation = collation_or_binary(collation);
        let lowers = !collation.is_bin() && !collation.equal(b"a", b"A");
        let mut analyzer = Analyzer { parser, collation, lowers, stopwords: Vec::new() };
        let mut stopwords: Vec<_> = STOPWORDS.iter().map(|word| analyzer.key(word)).collect();
        stopwords.sort_unstable();
        analyzer.stopwords = stopwords;
        analyzer
    }

    fn folded<'t>(&self, token: &'t str) -> Cow<'t, [u8]> {
        match self.lowers {
            true => Cow::Owned(self.collation.lower(token.as_bytes())),
            false => Cow::Borrowed(token.as_bytes()),
        }
    }

    /// The key of a token: equal for tokens that are the same word under the collation.
    pub fn key(&self, token: &str) -> Vec<u8> {
        let mut key = Vec::new();
        self.collation.write_key(&self.folded(token), &mut key);
        key.truncate(WORD_KEY_BYTES_MAX);
        key
    }

    /// Whether a key is of a word that begins with `text`.
    pub fn begins_with(&self, key: &[u8], text: &str) -> bool {
        self.collation.key_begins_with(key, &self.folded(text))
    }

    /// The tokens of a text.
    pub fn tokens<'t>(&self, text: &'t str) -> Vec<&'t str> {
        match self.parser {
            WordParser::Separated => tokens(text).collect(),
            WordParser::Grams(size) => grams(text, usize::from(size)).collect(),
        }
    }

    /// Whether an index has entries for the token with this key. A gram has none when a stopword is in it, as in the reference's engine.
    pub fn is_indexed(&self, token: &str, key: &[u8]) -> bool {
        let chars = token.chars().count();
        match self.parser {
            WordParser::Separated => {
                (WORD_CHARS_MIN..=WORD_CHARS_MAX).contains(&chars) && !self.is_stopword(key)
            }
            WordParser::Grams(size) => chars == usize::from(size) && !self.holds_stopword(token),
        }
    }

    fn is_stopword(&self, key: &[u8]) -> bool {
        self.stopwords.binary_search_by(|known| known.as_slice().cmp(key)).is_ok()
    }

    fn holds_stopword(&self, gram: &str) -> bool {
        let ends = || gram.char_indices().map(|(at, _)| at).skip(1).chain([gram.len()]);
        let mut starts = gram.char_indices().map(|(at, _)| at);
        starts.any(|start| {
            let mut ends = ends().filter(|end| *end > start);
            ends.any(|end| self.is_stopword(&self.key(&gram[start..end])))
        })
    }

    /// Adds the indexed words of a text, and the count of each.
    pub fn count_words(&self, text: &[u8], words: &mut BTreeMap<Vec<u8>, u32>) {
        for token in self.tokens(&String::from_utf8_lossy(text)) {
            let key = self.key(token);
            if self.is_indexed(token, &key) {
                *words.entry(key).or_default() += 1;
            }
        }
    }

    /// Common prefix of the keys of all entries whose words begin with `text`. Other keys may begin with it too.
    pub fn prefix_key(&self, text: &str) -> Vec<u8> {
        let (mut word, mut key) = (Vec::new(), Vec::new());
        self.collation.write_key_prefix(&self.folded(text), &mut word);
        word.truncate(WORD_KEY_BYTES_MAX);
        encode_text_prefix(&word, &entry_types()[0], &mut key);
        key
    }
}

/// Types of an entry's columns: the word's key, the row's locator, the count of the word in the row.
pub fn entry_types() -> [DataType; 3] {
    let bytes = |length| {
        let mut ty = DataType::new(TypeKind::VarBinary, length, 0).with_nullable(false);
        ty.collation = CollationId::BINARY;
        ty
    };
    let mut count = DataType::new(TypeKind::Int, 10, 0).with_nullable(false);
    count.unsigned = true;
    [bytes(WORD_KEY_BYTES_MAX as u32), bytes(LOCATOR_BYTES_MAX as u32), count]
}

/// The values of an entry.
pub fn entry(word: &[u8], locator: &[u8], count: u32) -> [Value; 3] {
    [Value::Bytes(word.into()), Value::Bytes(locator.into()), Value::UInt(u64::from(count))]
}

/// Common prefix of the keys of all entries of a word.
pub fn word_key(word: &[u8]) -> Vec<u8> {
    let mut key = Vec::new();
    encode_part(&Value::Bytes(word.into()), &entry_types()[0], None, false, &mut key);
    key
}

/// The key of an entry.
pub fn entry_key(word: &[u8], locator: &[u8]) -> Vec<u8> {
    let mut key = word_key(word);
    encode_part(&Value::Bytes(locator.into()), &entry_types()[1], None, false, &mut key);
    key
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Analyzer, WORD_CHARS_MAX, WordParser, entry_key, tokens, word_key};
    use crate::CollationId;

    fn analyzer(name: &str) -> Analyzer {
        Analyzer::new(charset::collation_by_name(name).expect("a collation").id)
    }

    fn counts(analyzer: &Analyzer, text: &str) -> Vec<(Vec<u8>, u32)> {
        let mut words = BTreeMap::new();
        analyzer.count_words(text.as_bytes(), &mut words);
        words.into_iter().collect()
    }

    #[test]
    fn letters_digits_and_underscores_make_tokens() {
        let found: Vec<&str> = tokens("don't can_not 42nd; größer—日本語").collect();
        assert_eq!(found, ["don", "t", "can_not", "42nd", "größer", "日本語"]);
        let found: Vec<&str> = tokens("gro\u{308}ßer हिन्दी\u{3000}x\u{fe0f}").collect();
        assert_eq!(found, ["gro\u{308}ßer", "हिन्दी", "x\u{fe0f}"]);
    }

    #[test]
    fn short_long_and_stop_words_are_not_indexed() {
        let analyzer = Analyzer::new(CollationId::UTF8MB4_0900_AI_CI);
        assert!(counts(&analyzer, "The at xx about WWW").is_empty());
        let longest = "y".repeat(WORD_CHARS_MAX);
        assert_eq!(counts(&analyzer, &longest).len(), 1);
        assert!(counts(&analyzer, &format!("{longest}y")).is_empty());
    }

    #[test]
    fn words_are_counted_under_the_collation() {
        let accents = Analyzer::new(CollationId::UTF8MB4_0900_AI_CI);
        assert_eq!(counts(&accents, "École ecole ÉCOLE"), [(accents.key("ecole"), 3)]);
        let cases = analyzer("utf8mb4_0900_as_cs");
        assert_eq!(counts(&cases, "École ecole ÉCOLE").len(), 2);
        let exact = analyzer("utf8mb4_bin");
        assert_eq!(counts(&exact, "École ecole ÉCOLE").len(), 3);
        // A stopword in another case is a different word there.
        assert_eq!(counts(&exact, "The the").len(), 1);
    }

    #[test]
    fn grams_are_pieces_between_separators_without_stopwords() {
        let analyzer = Analyzer::of(CollationId::UTF8MB4_0900_AI_CI, WordParser::Grams(2));
        assert_eq!(
            analyzer.tokens("日本語 x foo.b_z。y"),
            ["日本", "本語", "fo", "oo", "b_", "_z", "z。", "。y"]
        );
        assert_eq!(analyzer.tokens(""), [""; 0]);
        let is_indexed = |gram: &str| analyzer.is_indexed(gram, &analyzer.key(gram));
        assert!(is_indexed("日本") && is_indexed("lo"));
        assert!(
            !is_indexed("日") && !is_indexed("日本語") && !is_indexed("Ab") && !is_indexed("on")
        );
    }

    #[test]
    fn keys_of_words_that_begin_alike_lie_together() {
        for name in [
            "utf8mb4_0900_ai_ci",
            "utf8mb4_0900_as_cs",
            "utf8mb4_bin",
            "utf8mb4_general_ci",
            "latin1_swedish_ci",
            "utf8mb4_cs_0900_ai_ci",
            "utf8mb4_unicode_ci",
        ] {
            let analyzer = analyzer(name);
            let prefix = analyzer.prefix_key("data");
            for (word, begins) in [("data", true), ("database", true), ("datum", false)] {
                let key = analyzer.key(word);
                assert_eq!(analyzer.begins_with(&key, "data"), begins, "{word} in {name}");
                assert!(!begins || word_key(&key).starts_with(&prefix), "{word} in {name}");
            }
        }
        let accents = analyzer("utf8mb4_0900_as_cs");
        assert!(!accents.begins_with(&accents.key("dåtabase"), "data"));
        assert!(accents.begins_with(&accents.key("dåtabase"), "Dåt"));
    }

    #[test]
    fn an_entry_begins_with_its_word() {
        let word = Analyzer::new(CollationId::UTF8MB4_0900_AI_CI).key("word");
        assert!(entry_key(&word, &[0, 1, 2]).starts_with(&word_key(&word)));
    }
}
