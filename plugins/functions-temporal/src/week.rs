//! Weeks of the year in the eight modes of WEEK().

use types::Date;

/// Year and week of a date. In modes without bit 2, days before week 1 are week 0.
pub(crate) fn year_and_week(date: Date, mode: u32) -> (i64, i64) {
    let monday = mode & 1 == 1;
    let whole_weeks = mode & 2 == 2;
    let four_days = monday != (mode & 4 == 4);
    let (year, day) = (i64::from(date.year()), date.to_days());
    let start = start_of_first_week(year, monday, four_days);
    if day < start {
        if !whole_weeks {
            return (year, 0);
        }
        let before = start_of_first_week(year - 1, monday, four_days);
        return (year - 1, (day - before) / 7 + 1);
    }
    if whole_weeks && day >= start_of_first_week(year + 1, monday, four_days) {
        return (year + 1, 1);
    }
    (year, (day - start) / 7 + 1)
}

/// Day number of the first day of week 1: the first full week, or the first with four days in the year.
fn start_of_first_week(year: i64, monday: bool, four_days: bool) -> i64 {
    let first = first_day(year);
    let weekday = (first + if monday { 5 } else { 6 }).rem_euclid(7);
    match (four_days, weekday) {
        (true, 0..=3) => first - weekday,
        (false, 0) => first,
        _ => first + 7 - weekday,
    }
}

/// Day number of 1 January, also of the years before 0 and after 9999.
fn first_day(year: i64) -> i64 {
    match u32::try_from(year).ok().and_then(|year| Date::new(year, 1, 1)) {
        Some(date) => date.to_days(),
        None if year < 0 => 1 - 365,
        None => types::temporal::MAX_DAY + 1,
    }
}
