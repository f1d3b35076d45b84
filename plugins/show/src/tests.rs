//! Rewrites of typical statements. The SELECTs themselves are run by the SQL scripts under `tests/sql/show`.

use super::select::Select;
use super::server;
use syntax::ast::VarScope;

#[test]
fn like_filters_the_first_caption() {
    let like = syntax::ast::ShowFilter::Like(Box::from(&b"a\\_%"[..]));
    let text = server::variables(&VarScope::Global).filtered(Some(&like)).text("");
    assert_eq!(
        text,
        "SELECT VARIABLE_NAME AS `Variable_name`, VARIABLE_VALUE AS `Value` \
         FROM performance_schema.global_variables \
         HAVING `Variable_name` LIKE _utf8mb4 x'615c5f25' ORDER BY 1"
    );
}

#[test]
fn captions_and_text_cannot_break_out() {
    let text = Select::from("t").item("a", "x`y").equal("b", "' OR 1 -- ").text("");
    assert_eq!(text, "SELECT a AS `x``y` FROM t WHERE b = _utf8mb4 x'27204f522031202d2d20'");
}

#[test]
fn an_empty_result_keeps_its_captions() {
    let text = Select::empty(&[("File", "''"), ("Position", "0")]).text("");
    assert_eq!(text, "SELECT '' AS `File`, 0 AS `Position` FROM DUAL WHERE FALSE");
}
