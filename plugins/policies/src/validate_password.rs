//! `validate_password`: new passwords must be long enough and of several kinds of characters, and must not hold words of a dictionary. Variables, levels
//! and numbers are those of MySQL's component of this name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use errors::{Error, ErrorCode, Result};
use plugin_api::kit::{self, scalar};
use plugin_api::variable::{Definition, Kind, as_text};
use plugin_api::{
    ArgInfo, Arity, BackgroundJob, BindContext, BoundFunction, Coercion, GlobalValue, NewPassword,
    PasswordCheck, Plugin, PluginInfo, Registrar, RunningJob, ScalarFunction, SessionFactory,
};
use sys::sync::{Mutex, RwLock};
use types::{DateTime, Value};

use crate::NothingRuns;

const NAME: &str = "validate_password";
/// The name under which the function finds the rules.
const STATE: &str = "validate_password.rules";

const LEVELS: &[&str] = &["LOW", "MEDIUM", "STRONG"];
const MEDIUM: usize = 1;
const STRONG: usize = 2;

/// Shorter passwords have no strength at all, and shorter words are not looked for.
const WORD_CHARACTERS_MIN: usize = 4;
const WORD_CHARACTERS_MAX: usize = 100;

const COUNT: Kind = Kind::Int { min: 0, max: i32::MAX as i64 };

static CHANGED: Definition = Definition::global(
    "validate_password.changed_characters_percentage",
    Kind::Int { min: 0, max: 100 },
    "0",
    "percent of its length that a password which replaces a given one has other characters than that one",
);
static CHECK_USER: Definition = Definition::global(
    "validate_password.check_user_name",
    Kind::Bool,
    "ON",
    "ON: the name of the session's user, forwards or backwards, is no password",
);
static DICTIONARY: Definition = Definition::global(
    "validate_password.dictionary_file",
    Kind::Text,
    "",
    "File of words, one a line, relative to the data directory; SET reads it again. No password of level STRONG holds one of them",
);
static LENGTH: Definition = Definition::global(
    "validate_password.length",
    COUNT,
    "8",
    "characters that a password has at least; never fewer than the counts of kinds ask for",
);
static MIXED_CASE: Definition = Definition::global(
    "validate_password.mixed_case_count",
    COUNT,
    "1",
    "lower-case letters, and as many upper-case letters, that a password has at least from level MEDIUM on",
);
static NUMBERS: Definition = Definition::global(
    "validate_password.number_count",
    COUNT,
    "1",
    "digits that a password has at least from level MEDIUM on",
);
static LEVEL: Definition = Definition::global(
    "validate_password.policy",
    Kind::Enum(LEVELS),
    "MEDIUM",
    "LOW: length alone. MEDIUM: also digits, letters of both cases and other characters. STRONG: also no word of the dictionary",
);
static SPECIAL: Definition = Definition::global(
    "validate_password.special_char_count",
    COUNT,
    "1",
    "characters other than letters and digits that a password has at least from level MEDIUM on",
);

/// The plugin.
#[derive(Debug)]
pub struct ValidatePassword;

impl Plugin for ValidatePassword {
    fn info(&self) -> PluginInfo {
        PluginInfo::new(NAME, "Refuses weak passwords.").on_request()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        let rules = Arc::new(Rules::default());
        registrar.variable(&CHANGED, &rules.changed_percent);
        registrar.variable(&CHECK_USER, &rules.checks_user);
        registrar.variable(&LENGTH, &rules.length);
        registrar.variable(&MIXED_CASE, &rules.mixed_case);
        registrar.variable(&NUMBERS, &rules.numbers);
        registrar.variable(&LEVEL, &rules.level);
        registrar.variable(&SPECIAL, &rules.special);
        let reading = rules.clone();
        registrar.checked_variable(&DICTIONARY, &rules.file, move |value| reading.load(value));
        let words = rules.clone();
        registrar.status("validate_password.dictionary_file_words_count", move || {
            words.dictionary.read().words.len().to_string()
        });
        let read = rules.clone();
        registrar.status("validate_password.dictionary_file_last_parsed", move || {
            read.dictionary.read().read_at.clone()
        });
        registrar.shared_state(STATE, rules.clone());
        registrar.function(strength_function());
        registrar.password_check(rules.clone());
        registrar.job(rules);
    }
}

/// The words of the file, and when it was read.
#[derive(Debug, Default)]
struct Dictionary {
    words: BTreeSet<String>,
    read_at: String,
}

/// The rules, as the variables say.
#[derive(Debug, Default)]
struct Rules {
    changed_percent: GlobalValue,
    checks_user: GlobalValue,
    file: GlobalValue,
    length: GlobalValue,
    mixed_case: GlobalValue,
    numbers: GlobalValue,
    level: GlobalValue,
    special: GlobalValue,
    directory: Mutex<PathBuf>,
    dictionary: RwLock<Arc<Dictionary>>,
}

/// Characters of a password by kind.
#[derive(Debug, Default, PartialEq, Eq)]
struct Kinds {
    lower: u64,
    upper: u64,
    digits: u64,
    special: u64,
}

impl Kinds {
    fn of(password: &str) -> Kinds {
        let mut kinds = Kinds::default();
        for character in password.chars() {
            if character.is_numeric() {
                kinds.digits += 1;
            } else if character.is_uppercase() {
                kinds.upper += 1;
            } else if character.is_lowercase() {
                kinds.lower += 1;
            } else if !character.is_alphabetic() {
                kinds.special += 1;
            }
        }
        kinds
    }
}

impl Rules {
    /// Reads the words of a file. Those in force stay when it cannot be read.
    fn load(&self, value: &Value) -> Result<()> {
        let name = as_text(value);
        let text = match name.is_empty() {
            true => String::new(),
            false => {
                let path = self.directory.lock().join(Path::new(&name));
                sys::files::read_text(&path).map_err(|error| {
                    let message = format!("{}: '{name}': {error}", DICTIONARY.name);
                    Error::new(ErrorCode::WRONG_VALUE_FOR_VAR, message)
                })?
            }
        };
        let words = text.lines().map(|line| line.trim_end_matches('\r').to_owned());
        let words = words.filter(|word| !word.is_empty()).collect();
        let seconds = i64::try_from(sys::clock::wall().as_secs()).unwrap_or_default();
        let mut read_at = Vec::new();
        if let Some(now) = DateTime::from_unix_micros(seconds * 1_000_000) {
            now.write_text(0, &mut read_at);
        }
        let read_at = String::from_utf8_lossy(&read_at).into_owned();
        *self.dictionary.write() = Arc::new(Dictionary { words, read_at });
        Ok(())
    }

    /// The place of the level in `LEVELS`.
    fn level(&self) -> usize {
        let name = self.level.text();
        LEVELS.iter().position(|level| *level == name).unwrap_or(MEDIUM)
    }

    fn is_user_name(&self, password: &str, user: &str) -> bool {
        self.checks_user.is_on()
            && !user.is_empty()
            && (password == user || password.chars().rev().eq(user.chars()))
    }

    /// Whether a part of the password is a word of the dictionary.
    fn holds_word(&self, password: &str) -> bool {
        let dictionary = self.dictionary.read().clone();
        if dictionary.words.is_empty() {
            return false;
        }
        let lower = password.to_lowercase();
        let mut places: Vec<usize> = lower.char_indices().map(|(place, _)| place).collect();
        places.push(lower.len());
        let last = places.len() - 1;
        (0..=last).any(|from| {
            let lengths = WORD_CHARACTERS_MIN..=WORD_CHARACTERS_MAX.min(last - from);
            lengths.into_iter().any(|length| {
                dictionary.words.contains(&lower[places[from]..places[from + length]])
            })
        })
    }

    /// The strength of a password: 0 to 100, and 100 when it satisfies the level.
    fn strength(&self, password: &str, user: &str) -> i64 {
        let characters = password.chars().count();
        if characters < WORD_CHARACTERS_MIN || self.is_user_name(password, user) {
            return 0;
        }
        let (numbers, special) = (self.numbers.number(), self.special.number());
        let mixed = self.mixed_case.number();
        let least = self.length.number().max(numbers + special + 2 * mixed);
        if (characters as u64) < least {
            return 25;
        }
        let level = self.level();
        if level < MEDIUM {
            return 100;
        }
        let kinds = Kinds::of(password);
        let is_mixed = kinds.lower >= mixed && kinds.upper >= mixed;
        if !is_mixed || kinds.digits < numbers || kinds.special < special {
            return 50;
        }
        if level >= STRONG && self.holds_word(password) {
            return 75;
        }
        100
    }

    /// Whether enough characters of `new` do not occur in `current`.
    ///
    /// # Errors
    /// 4165.
    fn check_changed(&self, new: &str, current: &str) -> Result<()> {
        let needed = current.chars().count() as u64 * self.changed_percent.number() / 100;
        let known: BTreeSet<char> = current.to_lowercase().chars().collect();
        let fresh: BTreeSet<char> = new.to_lowercase().chars().collect();
        let found = fresh.difference(&known).count() as u64;
        if found < needed {
            let code = ErrorCode::VALIDATE_PASSWORD_INSUFFICIENT_CHANGED_CHARACTERS;
            return Err(Error::with(code, &[&needed, &found]));
        }
        Ok(())
    }
}

impl PasswordCheck for Rules {
    fn name(&self) -> &'static str {
        NAME
    }

    fn check(&self, new: &NewPassword<'_>) -> Result<()> {
        if self.strength(new.password, new.user) < 100 {
            return Err(Error::with(ErrorCode::NOT_VALID_PASSWORD, &[]));
        }
        new.current.map_or(Ok(()), |current| self.check_changed(new.password, current))
    }
}

impl BackgroundJob for Rules {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Reads the dictionary that the command line or an earlier SET PERSIST names.
    fn start(&self, sessions: Arc<dyn SessionFactory>) -> Result<Box<dyn RunningJob>> {
        *self.directory.lock() = PathBuf::from(sessions.global_text("datadir"));
        self.load(&self.file.value())?;
        Ok(Box::new(NothingRuns))
    }
}

/// It takes the place of the function of this name that knows no rules.
fn strength_function() -> ScalarFunction {
    scalar(
        "VALIDATE_PASSWORD_STRENGTH",
        Arity::exactly(1),
        "VALIDATE_PASSWORD_STRENGTH(password)\nThe strength of a password by the password rules, 0 to 100; 100 satisfies them.",
        bind_strength,
    )
    .volatile()
}

fn bind_strength(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = kit::integer_type(10, true);
    Ok(BoundFunction::new(ty, vec![Coercion::Text], |ctx, args| {
        let state = ctx.session.shared_state(STATE);
        let rules = state.and_then(|state| state.downcast::<Rules>().ok());
        let user = ctx.session.current_user();
        let user = user.rsplit_once('@').map_or(&*user, |(user, _)| user);
        let strength = |rules: Arc<Rules>| rules.strength(&kit::text(&args[0]), user);
        Ok(Value::Int(rules.map_or(0, strength)))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        let rules = Rules::default();
        for count in [&rules.mixed_case, &rules.numbers, &rules.special] {
            count.store(Value::Int(1));
        }
        rules.level.store(Value::text("MEDIUM"));
        rules.length.store(Value::Int(8));
        rules.checks_user.store(Value::Int(1));
        rules
    }

    #[test]
    fn a_password_is_as_strong_as_the_rules_that_it_satisfies() {
        let mut rules = rules();
        for (password, strength) in [
            ("", 0),
            ("abc", 0),
            ("abcd", 25),
            ("root", 0),
            ("toor", 0),
            ("abcdefgh", 50),
            ("Abcdefg1", 50),
            ("Abcdef1!", 100),
            ("Aa1日bcdefgh", 50),
            ("Aa1£bcdefgh", 100),
        ] {
            assert_eq!(rules.strength(password, "root"), strength, "{password}");
        }
        rules.level.store(Value::text("STRONG"));
        let words = BTreeSet::from(["secret".to_owned(), "abc".to_owned()]);
        rules.dictionary = RwLock::new(Arc::new(Dictionary { words, read_at: String::new() }));
        assert_eq!(rules.strength("MySeCret1!", "root"), 75);
        assert_eq!(rules.strength("abcABC1!xyz", "root"), 100, "short words are not looked for");
    }

    #[test]
    fn the_kinds_that_are_wanted_make_a_shortest_length() {
        let rules = rules();
        rules.length.store(Value::Int(0));
        rules.numbers.store(Value::Int(5));
        rules.level.store(Value::text("LOW"));
        assert_eq!(rules.strength("abcdefg", "root"), 25);
        assert_eq!(rules.strength("abcdefgh", "root"), 100);
    }

    #[test]
    fn enough_characters_must_be_new() {
        let rules = rules();
        rules.changed_percent.store(Value::Int(40));
        let check = |new: &str| rules.check_changed(new, "abcdefgh").is_ok();
        assert!(!check("ABCDEFGH") && !check("abcdefghij") && !check("aaaazzzz"));
        assert!(check("abcdefghijk") && check("wxyzvuts"));
    }
}
