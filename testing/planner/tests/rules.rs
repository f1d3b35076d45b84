//! The scripts under `rules`, a test each.

use std::path::Path;

use planner::{View, check};

fn rule(name: &str, view: View) {
    check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("rules").join(name), view);
}

macro_rules! rules {
    ($view:expr, $folder:literal: $($name:ident)*) => {
        $(#[test]
        fn $name() {
            rule(concat!($folder, "/", stringify!($name), ".rules"), $view);
        })*

        /// No script is left out.
        #[test]
        fn all() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("rules").join($folder);
            let mut names: Vec<String> = std::fs::read_dir(folder)
                .expect("the folder of rules")
                .map(|entry| entry.expect("a script").file_name().to_string_lossy().into_owned())
                .collect();
            names.sort();
            let mut listed = vec![$(concat!(stringify!($name), ".rules")),*];
            listed.sort_unstable();
            assert_eq!(names, listed);
        }
    };
}

mod optimizer {
    use super::*;

    rules! { View::Plan, "optimizer":
        constants pushdown ranges indexes join_order outer_joins semijoins order_and_limit grouping partitions derived
    }
}

mod binder {
    use super::*;

    rules! { View::Bound, "binder":
        names grouping types collations views subqueries writes
    }
}

mod definitions {
    use super::*;

    rules! { View::Definition, "definitions":
        create alter
    }
}
