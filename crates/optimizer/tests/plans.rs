//! Which plans statements get.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

#[path = "../../binder/tests/support/mod.rs"]
mod support;

use optimizer::{OptimizeInput, StatisticsSource};
use plan::Plan;

/// t1 is large, t2 middling, t3 and t4 small.
struct Sizes;

impl StatisticsSource for Sizes {
    fn rows(&self, table: u64) -> u64 {
        match table {
            1024 => 100_000,
            1025 => 5_000,
            _ => 50,
        }
    }
}

fn planned(sql: &str) -> Plan {
    let bound = match support::bind(sql) {
        Ok(bound) => bound,
        Err(error) => panic!("{sql}: {error}"),
    };
    let input = OptimizeInput {
        tables: &bound.tables,
        statistics: &Sizes,
        collation: support::COLLATION,
        trace: None,
    };
    match optimizer::optimize(bound.plan, &input) {
        Ok((plan, _)) => plan,
        Err(error) => panic!("{sql}: {error}"),
    }
}

#[track_caller]
fn check(sql: &str, expected: &str) {
    let printed = plan::print::plan(&planned(sql));
    let lines: Vec<&str> = expected.lines().filter(|line| !line.trim().is_empty()).collect();
    let indent = lines.iter().map(|l| l.len() - l.trim_start().len()).min().unwrap_or(0);
    let wanted: Vec<&str> = lines.iter().map(|line| &line[indent..]).collect();
    let got: Vec<&str> = printed.lines().collect();
    assert_eq!(got, wanted, "{sql}\n{printed}");
}

#[test]
fn access_paths() {
    check(
        "select c from t1 where a = 5",
        "
        Query c=r2
          Scan t1 unique 0 [5] (2:r2)",
    );
    check(
        "select c from t1 where a > 5 and a <= 9 and c = 'x'",
        "
        Query c=r2
          Scan t1 ranges 0 [] > 5 <= 9 (2:r2) filter (r2 = 'x')",
    );
    check(
        "select a from t1 where a in (3, 1) or a = 7",
        "
        Query a=r0
          Scan t1 ranges 0 [3] | [1] | [7] (0:r0)",
    );
    check(
        "select a from t1 where b < 5",
        "
        Query a=r0
          Scan t1 ranges 1 [] < 5 (0:r0 1:r1) filter (r1 < 5)",
    );
    check(
        "select d from t2 where b = 1 and d >= '2020-01-01'",
        "
        Query d=r2
          Scan t2 ranges 1 [1] >= 2020-01-01 (2:r2)",
    );
    check(
        "select a from t1 where b is null",
        "
        Query a=r0
          Scan t1 ranges 1 [NULL (null)] (0:r0)",
    );
    check(
        "select a from t1 where 1 = 0",
        "
        Query a=r0
          Nothing",
    );
}

#[test]
fn orders() {
    check(
        "select a from t1 order by a desc limit 3",
        "
        Query a=r0
          Limit count 3
            Scan t1 full 0 backward (0:r0)",
    );
    check(
        "select a from t2 where b = 3 order by d limit 2",
        "
        Query a=r0
          Limit count 2
            Scan t2 ranges 1 [3] (0:r0)",
    );
    check(
        "select a from t1 order by c limit 2, 3",
        "
        Query a=r0
          Limit count 3 offset 2
            Sort r2 top 5
              Scan t1 full 0 (0:r0 2:r2)",
    );
    check(
        "select max(b) from t1",
        "
        Query max(b)=r3
          Aggregate Scalar [] r3 := MAX(r1) carried []
            Limit count 1
              Scan t1 full 1 backward (1:r1) filter (r1 is not null)",
    );
    check(
        "select a, count(*) from t1 group by a",
        "
        Query a=r0, count(*)=r3
          Aggregate Sorted [r0] r3 := COUNT(*) carried []
            Scan t1 full 0 (0:r0)",
    );
}

#[test]
fn joins() {
    check(
        "select t1.c from t3 join t1 on t1.a = t3.x",
        "
        Query c=r4
          NestedLoop Inner
            Scan t3 full 0 (0:r0)
            Scan t1 unique 0 [r0] (2:r4)",
    );
    check(
        "select t3.y from t3 left join t4 on t4.parent = t3.x where t4.id is null",
        "
        Query y=r1
          Filter (r2 is null)
            HashJoin Left [r0 = r3]
              Scan t3 full 0 (0:r0 1:r1)
              Scan t4 full 1 (0:r2 1:r3)",
    );
    check(
        "select t3.y from t3 left join t4 on t4.id = t3.x where t4.parent = 1",
        "
        Query y=r1
          HashJoin Inner [r0 = r2]
            Scan t3 full 0 (0:r0 1:r1)
            Scan t4 ranges 1 [1] (0:r2)",
    );
}

#[test]
fn alternatives_give_what_they_share() {
    check(
        "select t1.c from t3, t1 where t1.a = t3.x and t1.c = 'x' and t3.y = 1 or t1.a = t3.x and t1.c = 'y' and t3.y = 2",
        "
        Query c=r4
          NestedLoop Inner
            Scan t3 full 0 (0:r0 1:r1) filter ((r1 = 1) or (r1 = 2))
            Scan t1 unique 0 [r0] (2:r4) filter (((r4 = 'x') or (r4 = 'y')) and (((r4 = 'x') and (r1 = 1)) or ((r4 = 'y') and (r1 = 2))))",
    );
    check(
        "select c from t1 where c = 'x' and a = 5 or a = 5",
        "
        Query c=r2
          Scan t1 unique 0 [5] (2:r2)",
    );
}

#[test]
fn subqueries_become_joins() {
    check(
        "select y from t3 where x in (select a from t1 where c = 'q')",
        "
        Query y=r1
          NestedLoop Inner
            Scan t3 full 0 (0:r0 1:r1)
            Scan t1 unique 0 [r0] (2:r4) filter (r4 = 'q')
        #0 []
          Nothing",
    );
    check(
        "select y from t3 where not exists (select 1 from t4 where parent = x and id > 3)",
        "
        Query y=r1
          HashJoin Anti [r0 = r3]
            Scan t3 full 0 (0:r0 1:r1)
            Scan t4 ranges 0 [] > 3 (1:r3)
        #0 []
          Nothing",
    );
    check(
        "select y from t3 where x not in (select parent from t4)",
        "
        Query y=r1
          Scan t3 full 0 (0:r0 1:r1) filter ((r0) not in #0)
        #0 [r3]
          Scan t4 full 1 (1:r3)",
    );
}

#[test]
fn a_small_subquery_drives_a_large_table() {
    check(
        "select c from t1 where a in (select x from t3 where y = 'q')",
        "
        Query c=r2
          NestedLoop Inner
            Distinct r3
              Scan t3 full 0 (0:r3 1:r4) filter (r4 = 'q')
            Scan t1 unique 0 [r3] (2:r2)
        #0 []
          Nothing",
    );
}

#[test]
fn long_statements_do_not_recurse() {
    let list: Vec<String> = (0..20_000).map(|n| format!("b <> {n}")).collect();
    planned(&format!("select a from t1 where {}", list.join(" and ")));
    planned(&format!("select a from t1 where {}", list.join(" or ")));
    let unions = vec!["select 1"; 3000].join(" union all ");
    planned(&unions);
    let nested = format!("select {}1{}", "(".repeat(200), ")".repeat(200));
    planned(&nested);
    let sums = vec!["a"; 250].join(" + ");
    planned(&format!("select {sums} from t1"));
}

/// Each query block is planned once: twenty-four that could be planned two ways would otherwise never end.
#[test]
fn nested_groups_are_planned_once() {
    let mut query = String::from("select a, b from t1");
    for level in 0..24 {
        query = format!(
            "select a, count(*) as b from ({query}) d{level} group by a order by a limit 5"
        );
    }
    // As much stack as the server gives a statement: unoptimised, each level needs some 90 KiB.
    let planning = move || drop(planned(&query));
    let thread = std::thread::Builder::new().stack_size(8 << 20).spawn(planning);
    thread.expect("a thread").join().expect("planned");
}

#[test]
fn derived_tables() {
    check(
        "select n from (select b, count(*) n from t2 group by b) d where b = 4",
        "
        Query n=r3
          Aggregate Sorted [r1] r3 := COUNT(*) carried []
            Scan t2 ranges 1 [4] (1:r1)",
    );
    check(
        "select d.m from (select a + 1 as m from t1) d where m = 3",
        "
        Query m=r3
          Project r3 := (r0 + 1)
            Scan t1 full 1 (0:r0) filter ((r0 + 1) = 3)",
    );
}

#[test]
fn writes() {
    check(
        "update t1 set b = 2 where b = 1",
        "
        Update t1 b = 2
        buffered
          Scan t1 ranges 1 [1] (0:r0 1:r1 2:r2)",
    );
    check(
        "delete from t3 where x = 1",
        "
        Delete t3
          Scan t3 full 0 (0:r0 1:r1) filter (r0 = 1)",
    );
    check(
        "insert into t3 select a, c from t1 where a = 1",
        "
        Insert t3 [0, 1]
          Scan t1 unique 0 [1] (0:r2 2:r4)",
    );
}

fn explained(sql: &str) -> Vec<String> {
    let Plan::Rows { rows, .. } = planned(sql) else { panic!("{sql}") };
    rows.iter()
        .map(|row| row.iter().map(plan::print::value).collect::<Vec<_>>().join("|"))
        .collect()
}

#[test]
fn explain() {
    assert_eq!(
        explained(
            "explain select t1.c from t3 join t1 on t1.a = t3.x where t3.y = 'q' order by t1.c"
        ),
        [
            "1|'SIMPLE'|'t3'|NULL|'ALL'|NULL|NULL|NULL|NULL|50|10.0|'Using where; Using temporary; Using filesort'",
            "1|'SIMPLE'|'t1'|NULL|'eq_ref'|'PRIMARY'|'PRIMARY'|'4'|'test.t3.x'|1|100.0|NULL",
        ]
    );
    assert_eq!(
        explained("explain format=tree select a from t1 where b = 3 and c = 'x' limit 2"),
        [
            "'-> Limit: 2 row(s)  (cost=350 rows=2)\n    -> Filter: (t1.c = 'x')  (cost=350 rows=1000)\n        -> Index lookup on t1 using b (b = 3)  (cost=350 rows=1000)\n'"
        ]
    );
    let json = explained("explain format=json select 1 from t1 where a = 1");
    assert!(json[0].contains("Single-row index lookup on t1 using PRIMARY (a = 1)"), "{}", json[0]);
}
