//! The command line.

use session::Wanted;
use sys::affinity::Affinity;

use crate::options::{self, Options, Request, read_section_lines};

fn run(arguments: &[&str]) -> Result<Options, String> {
    match options::parse(arguments.iter().map(|text| (*text).to_owned()))? {
        Request::Run(options) => Ok(*options),
        other => Err(format!("{other:?}")),
    }
}

#[test]
fn names_take_dashes_and_underscores_and_values_two_forms() {
    let options = run(&["--datadir", "/d", "--bind_address=127.0.0.1", "-P", "0"]).unwrap();
    assert_eq!(options.datadir.to_str(), Some("/d"));
    assert_eq!(options.socket.to_str(), Some("/d/squall.sock"));
    assert_eq!(options.port, 0);
    // Without this option the pool gets a share of the machine's memory.
    let pool = "--innodb-buffer-pool-size=64M";
    let options = run(&["--max-connections=7", "--skip-ssl", "--loose-sql_mode=ANSI", pool]);
    let options = options.unwrap();
    assert!(options.tls_disabled);
    let expected = [
        ("max_connections", "7"),
        ("sql_mode", "ANSI"),
        ("innodb_buffer_pool_size", "64M"),
        ("log_error_verbosity", "3"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(options.variables, expected);
}

#[test]
fn the_variable_has_the_level_of_the_log() {
    let levels = |arguments: &[&str]| {
        let options = run(arguments).unwrap();
        let named = |(name, _): &&(String, String)| name == "log_error_verbosity";
        let value = options.variables.iter().find(named).map(|(_, value)| value.clone());
        (options.verbosity, value.unwrap())
    };
    assert_eq!(levels(&[]), (3, "3".to_owned()));
    assert_eq!(levels(&["--log-error-verbosity=1"]), (1, "1".to_owned()));
    assert_eq!(levels(&["--log-error-verbosity=4"]), (4, "3".to_owned()));
}

#[test]
fn processors_are_words_or_a_list_and_shown_in_one_way() {
    let shown = |argument: &str| {
        let options = run(&[argument]).unwrap();
        let named = |(name, _): &&(String, String)| name == "cpu_affinity";
        let last = options.variables.iter().rfind(named).map(|(_, value)| value.clone());
        (options.affinity, last)
    };
    assert_eq!(shown("--port=1"), (Affinity::Off, None));
    assert_eq!(shown("--cpu-affinity=auto"), (Affinity::Auto, Some("AUTO".to_owned())));
    assert_eq!(shown("--skip-cpu-affinity"), (Affinity::Off, Some("OFF".to_owned())));
    let (list, text) = shown("--cpu_affinity=8,0-1,2");
    assert_eq!((list, text), (Affinity::List([0, 1, 2, 8].into()), Some("0-2,8".to_owned())));
    let error = run(&["--cpu-affinity=3-1"]).unwrap_err();
    assert!(error.starts_with("--cpu-affinity: '3-1' ends before it begins"), "{error}");
}

#[test]
fn root_without_a_password_stays_on_loopback() {
    assert!(run(&["--insecure-root"]).unwrap().insecure_root);
    assert!(run(&["--insecure-root", "--bind-address=0.0.0.0"]).is_err());
    assert!(run(&["--insecure-root", "--bind-address=*"]).is_err());
    assert!(run(&["--insecure-root", "--bind-address=10.0.0.1", "--skip-networking"]).is_ok());
}

#[test]
fn what_the_server_cannot_do_at_start_is_refused() {
    assert!(run(&["--daemonize"]).unwrap_err().starts_with("--daemonize is not built"));
    assert!(run(&["--daemonize=OFF"]).is_ok());
    assert!(options::check_user(Some("mysql"), "root").unwrap_err().contains("'mysql'"));
    let fine = [(Some("root"), "root"), (Some("0"), "root"), (None, "root"), (Some("a"), "b")];
    assert!(fine.iter().all(|(wanted, own)| options::check_user(*wanted, own).is_ok()));
    let logged = |arguments: &[&str]| run(arguments).unwrap().log_error;
    assert!(logged(&["--log-error=e.log"]).is_some());
    assert_eq!(logged(&["--log-error=e.log", "--console"]), None);
}

#[test]
fn option_files_have_sections() {
    let text = "[client]\nport=1\n[mysqld]\n# comment\nsql-mode = \"ANSI\"\nskip-networking\n";
    let expected = [("sql_mode", "ANSI"), ("skip_networking", "")];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(read_section_lines(text), expected);
}

#[test]
fn plugins_are_chosen_in_the_order_given() {
    let chosen = |arguments: &[&str]| {
        let choices = run(arguments).unwrap().plugins;
        choices.into_iter().map(|choice| (choice.name, choice.wanted)).collect::<Vec<_>>()
    };
    assert_eq!(chosen(&[]), []);
    let arguments = ["--plugin-add=js", "--plugin_add=a-b, c", "--plugin-remove", "js"];
    let expected = [
        ("js", Wanted::Loaded),
        ("a-b", Wanted::Loaded),
        ("c", Wanted::Loaded),
        ("js", Wanted::NotLoaded),
    ];
    assert_eq!(chosen(&arguments), expected.map(|(name, wanted)| (name.to_owned(), wanted)));
}
