//! The meaning of statements, and the errors of invalid ones.

mod support;

use support::bind;

fn bound(sql: &str) -> String {
    match bind(sql) {
        Ok(bound) => plan::print::logical_plan(&bound.plan),
        Err(error) => panic!("{sql}: {error}"),
    }
}

/// Lines of `expected` after the first are indented by 9 extra columns.
#[track_caller]
fn check(sql: &str, expected: &str) {
    let printed = bound(sql);
    let wanted: Vec<&str> = expected
        .lines()
        .map(|line| line.strip_prefix("         ").unwrap_or(line).trim_end())
        .collect();
    let got: Vec<&str> = printed.lines().map(str::trim_end).collect();
    assert_eq!(got, wanted, "{sql}\n{printed}");
}

#[track_caller]
fn fails(sql: &str, expected: &str) {
    match bind(sql) {
        Ok(bound) => panic!("{sql}:\n{}", plan::print::logical_plan(&bound.plan)),
        Err(error) => assert_eq!(error, expected, "{sql}"),
    }
}

#[test]
fn plain_selects() {
    check(
        "select a, b + 1 from t1 where a = 5",
        "Query a=r0 int(11), b + 1=(r1 + 1) bigint(12)?
           Filter (r0 = 5)
             Get #0",
    );
    check(
        "select 1, 'x', 1.50, -3",
        "Query 1=1 bigint(2), x='x' varchar(1), 1.50=1.50 decimal(3,2), -3=-3 bigint(2)\n  OneRow",
    );
    check(
        "select t.* from t1 as t order by 2 desc, c limit 3",
        "Query a=r0 int(11), b=r1 int(11)?, c=r2 varchar(20)?
           Limit count 3
             Sort r1 desc, r2
               Get #0",
    );
}

#[test]
fn groups() {
    check(
        "select b, count(*) n, sum(a) from t1 group by b having n > 1 order by n",
        "Query b=r1 int(11)?, n=r3 bigint(21), sum(a)=r4 decimal(32,0)?
           Sort r3
             Filter (r3 > 1)
               Aggregate [r1] r3 := COUNT(*), r4 := SUM(r0)
                 Get #0",
    );
    check(
        "select b + 1 from t1 group by b + 1",
        "Query b + 1=r3 bigint(12)?
           Aggregate [r3 := (r1 + 1)] 
             Get #0",
    );
    fails(
        "select c from t1 group by b",
        "1055 Expression #1 of SELECT list is not in GROUP BY clause and contains nonaggregated column 'test.t1.c' which is not functionally dependent on columns in GROUP BY clause; this is incompatible with sql_mode=only_full_group_by",
    );
    fails(
        "select c, count(*) from t1",
        "1140 In aggregated query without GROUP BY, expression #1 of SELECT list contains nonaggregated column 'test.t1.c'; this is incompatible with sql_mode=only_full_group_by",
    );
    // The primary key, an equality and a constant determine the rest.
    bound("select b, c from t1 group by a");
    bound("select t2.b from t1 join t2 on t1.a = t2.a group by t1.a");
    bound("select c, count(*) from t1 where a = 3");
    fails("select a from t1 where count(*) > 1", "1111 Invalid use of group function");
    fails("select sum(sum(a)) from t1", "1111 Invalid use of group function");
}

#[test]
fn names_that_are_wrong() {
    fails("select z from t1", "1054 Unknown column 'z' in 'field list'");
    fails("select a from t1 where z = 1", "1054 Unknown column 'z' in 'where clause'");
    fails("select a from t1 order by z", "1054 Unknown column 'z' in 'order clause'");
    fails("select a from t1 order by 4", "1054 Unknown column '4' in 'order clause'");
    fails("select a from t1 having c = 1", "1054 Unknown column 'c' in 'having clause'");
    fails("select a from t1 join t2 on t1.a = t2.z", "1054 Unknown column 't2.z' in 'on clause'");
    fails("select a from t1, t2", "1052 Column 'a' in field list is ambiguous");
    fails("select 1 from t1, t1", "1066 Not unique table/alias: 't1'");
    fails("select 1 from nope", "1146 Table 'test.nope' doesn't exist");
    fails("select nope(1)", "1305 FUNCTION test.nope does not exist");
    fails(
        "select concat()",
        "1582 Incorrect parameter count in the call to native function 'CONCAT'",
    );
    fails(
        "select 1 union select 1, 2",
        "1222 The used SELECT statements have a different number of columns",
    );
    fails("select (select 1, 2)", "1241 Operand should contain 1 column(s)");
    fails("select (1, 2) = 1", "1241 Operand should contain 2 column(s)");
    fails("select * from (select 1 a, 2 a) d", "1060 Duplicate column name 'a'");
    fails("select *", "1096 No tables used");
    fails("select t9.* from t1", "1051 Unknown table 't9'");
    fails(
        "update t1 set a = 1 where b in (select b from t1)",
        "1093 You can't specify target table 't1' for update in FROM clause",
    );
    fails("insert into t1 (a, a) values (1, 2)", "1110 Column 'a' specified twice");
    fails("insert into t1 values (1)", "1136 Column count doesn't match value count at row 1");
}

#[test]
fn joins() {
    check(
        "select * from t1 join t2 using (a) left join t3 on t3.x = t2.b",
        "Query a=r0 int(11), b=r1 int(11)?, c=r2 varchar(20)?, b=r4 int(11)?, d=r5 date(10)?, x=r6 int(11)?, y=r7 varchar(10)?
           Join Left on (r6 = r4)
             Join Inner on (r0 = r3)
               Get #0
               Get #1
             Get #2",
    );
    check(
        "select t1.a from t1 right join t2 on t1.a = t2.b",
        "Query a=r0 int(11)?
           Join Left on (r0 = r4)
             Get #1
             Get #0",
    );
    bound("select a, b, c, d from t1 natural join t2");
}

#[test]
fn subqueries_and_derived_tables() {
    check(
        "select a, (select max(d) from t2 where t2.b = t1.b) from t1 where exists (select 1 from t3 where x = a)",
        "Query a=r0 int(11), (select max(d) from t2 where t2.b = t1.b)=#1 date(10)?
           Filter exists #0
             Get #0
         #0 [1] outer [r0]
           Filter (r3 = r0)
             Get #1
         #1 [r8] outer [r1]
           Aggregate scalar [] r8 := MAX(r7)
             Filter (r6 = r1)
               Get #2",
    );
    check(
        "select d.k from (select a as k, b + 1 as n from t1) d where n > 3",
        "Query k=r0 int(11)
           Filter (r3 > 3)
             Project r3 := (r1 + 1)
               Get #0",
    );
    check(
        "select k, b1 from v1 where b1 = 2",
        "Query k=r0 int(11), b1=r3 bigint(12)?
           Filter (r3 = 2)
             Project r3 := (r1 + 1)
               Get #0",
    );
    check(
        "with q as (select b, count(*) n from t1 group by b) select q1.n from q q1 join q q2 on q1.b = q2.b",
        "Query n=r5 bigint(21)
           Join Inner on (r4 = r6)
             CteScan 0 q1 r4 r5
             CteScan 0 q2 r6 r7
         cte 0 q [r1, r3]
           Aggregate [r1] r3 := COUNT(*)
             Get #0",
    );
    check(
        "with recursive n as (select 1 i union all select i + 1 from n where i < 5) select i from n",
        "Query i=r2 bigint(2)?
           CteScan 1 n r2
         cte 1 n [r1]
           RecursiveCte 0 r1 := 1 | (r0 + 1)
             OneRow
             Filter (r0 < 5)
               CteScan 0 n r0",
    );
    check(
        "select * from t1, lateral (select x from t3 where x = a limit 1) l",
        "Query a=r0 int(11), b=r1 int(11)?, c=r2 varchar(20)?, x=r3 int(11)?
           Join Inner
             Get #0
             Derived l lateral r3
               Limit count 1
                 Filter (r3 = r0)
                   Get #1",
    );
}

#[test]
fn comparisons_convert_constants() {
    check(
        "select 1 from t2 where d = '2020-01-02' and b = '7'",
        "Query 1=1 bigint(2)
           Filter ((r2 = 2020-01-02) and (r1 = 7))
             Get #0",
    );
    check(
        "select 1 from t4 where ts > '2020-01-02 03:04:05'",
        "Query 1=1 bigint(2)
           Filter (TimestampToLocal(r2 as timestamp(19)?) > 2020-01-02 03:..)
             Get #0",
    );
    check(
        "select (a, b) = (1, 2), (a, b) < (1, 2) from t1",
        "Query (a, b) = (1, 2)=((r0 = 1) and (r1 = 2)) bigint(1)?, (a, b) < (1, 2)=((r0 < 1) or ((r0 = 1) and (r1 < 2))) bigint(1)?
           Get #0",
    );
}

#[test]
fn writes() {
    check(
        "insert into t1 (a, c) values (1, default), (2, 'x') on duplicate key update b = values(b) + 1",
        "Insert t1 [0, 2]
           (1, DEFAULT)
           (2, 'x')
           Update 1 = (r10 + 1)",
    );
    check(
        "update t1 set b = b + 1, c = default where a = 1",
        "Write t1 b = (r1 + 1), c = DEFAULT
           Filter (r0 = 1)
             Get #0",
    );
    check(
        "delete t1 from t1 join t2 on t1.a = t2.a",
        "Write t1 
           Join Inner on (r0 = r3)
             Get #0
             Get #1",
    );
    let bound = bind("delete from t1").unwrap();
    let plan::LogicalStatement::Delete(write) = &bound.plan.statement else { panic!() };
    let child = &write.targets[0].write.children[0];
    assert_eq!(
        &*child.text,
        "`test`.`t4`, CONSTRAINT `fk` FOREIGN KEY (`parent`) REFERENCES `t1` (`a`) ON DELETE CASCADE"
    );
    assert_eq!((child.columns.as_slice(), child.other_columns.as_slice()), (&[0][..], &[1][..]));
    assert_eq!(child.other_index, 1);
}

#[test]
fn privileges_name_columns() {
    let bound = bind("select a from t1 where b = 1").unwrap();
    let privilege = &bound.privileges[0];
    let columns: Vec<&str> = privilege.columns.iter().map(|c| &**c).collect();
    assert_eq!((&*privilege.table, columns), ("t1", vec!["b", "a"]));
}

#[test]
fn windows() {
    check(
        "select a, row_number() over (partition by b order by a) r, sum(a) over w from t1 window w as (order by c)",
        "Query a=r0 int(11), r=r3 bigint(21) unsigned, sum(a) over w=r4 decimal(32,0)?
           Window partition [] order [r2] r4 := SUM(r0) Range unbounded preceding..current row
             Window partition [r1] order [r0] r3 := ROW_NUMBER() Range unbounded preceding..current row
               Get #0",
    );
    fails(
        "select 1 from t1 where rank() over () = 1",
        "3593 You cannot use the window function 'rank' in this context.'",
    );
    fails("select sum(a) over w from t1", "3579 Window name 'w' is not defined.");
}

#[test]
fn parameters_take_types_from_their_place() {
    let bound = bind("select ? from t1 where a = ? limit ?").unwrap();
    let kinds: Vec<_> = bound.parameters.iter().map(|ty| ty.kind).collect();
    use types::TypeKind::*;
    assert_eq!(kinds, [VarChar, Int, BigInt]);
}

/// The first output of a query.
fn output(sql: &str) -> plan::Expr {
    let bound = bind(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    match bound.plan.statement {
        plan::LogicalStatement::Query(query) => query.outputs[0].expr.clone(),
        other => panic!("{sql}: {other:?}"),
    }
}

#[test]
fn calls_carry_what_may_be_assumed_of_them() {
    assert!(output("select a + rand() from t1").is_volatile());
    assert!(output("select @x := a from t1").is_volatile());
    assert!(!output("select concat(a, now()) from t1").is_volatile());
    let plan::Expr::Function { function, .. } = output("select now()") else {
        panic!("a call stays a call")
    };
    assert_eq!(function.traits.volatility, types::Volatility::Stable);
}

#[test]
fn a_role_that_no_plugin_plays_is_not_supported() {
    fails(
        "select extract(day from '2020-01-01')",
        "1235 This version of Squall doesn't yet support 'Extract'",
    );
    fails("select bit_and(a) from t1", "1235 This version of Squall doesn't yet support 'BIT_AND'");
}

#[test]
fn the_sign_of_not_is_deprecated_and_the_word_is_not() {
    let deprecations = |sql: &str| bind(sql).unwrap().deprecations.len();
    assert_eq!(deprecations("select !a from t1"), 1);
    assert_eq!(deprecations("select not a from t1"), 0);
    assert_eq!(output("select !a from t1"), output("select not a from t1"));
}

#[test]
fn in_braces_a_text_of_another_kind_is_a_text() {
    assert_eq!(output("select {d '2020-01-02'}").ty().kind, types::TypeKind::Date);
    assert_eq!(output("select {d '2020-01-02 10:11:12'}").ty().kind, types::TypeKind::VarChar);
    fails("select date '2020-01-02 10:11:12'", "1525 Incorrect DATE value: '2020-01-02 10:11:12'");
}
