//! FORMAT: a number with grouped thousands, in the style of a locale.

use errors::{ErrorCode, Result};
use plugin_api::kit::{self, NumberClass, number_class, scalar};
use plugin_api::{
    ArgInfo, Arguments, Arity, BindContext, BoundFunction, Coercion, FunctionContext, NullRule,
    ScalarFunction,
};
use types::Value;

use crate::rounding::rounded_double;

/// Most digits after the point.
const DIGITS_MAX: i64 = 30;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[scalar(
    "FORMAT",
    Arity::between(2, 3),
    "FORMAT(X, D[, locale])\nX rounded to D digits after the point, with its thousands grouped.",
    bind_format,
)
.numbers(Arguments::only(0))];

fn bind_format(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let characters = kit::text_length(&args[0].ty);
    let length = characters + characters / 3 + 2 + DIGITS_MAX as u64;
    let ty = kit::text_type(length, ctx.collation_connection);
    let number = match number_class(&args[0].ty) {
        NumberClass::Integer { .. } | NumberClass::Decimal => Coercion::Decimal,
        NumberClass::Double => Coercion::Double,
    };
    let mut bound = BoundFunction::new(ty, vec![number, Coercion::Integer, Coercion::Text], kernel);
    bound.nulls = NullRule::Kernel;
    Ok(bound)
}

fn kernel(ctx: &mut FunctionContext<'_>, args: &[Value]) -> Result<Value> {
    if args[0].is_null() || args[1].is_null() {
        return Ok(Value::Null);
    }
    let digits = kit::integer_i64(&args[1]).clamp(0, DIGITS_MAX) as u8;
    let locale = match args.get(2) {
        None => LOCALES[0],
        Some(Value::Null) => unknown_locale(ctx, "NULL"),
        Some(name) => {
            let name = kit::text(name).into_owned();
            find_locale(&name).unwrap_or_else(|| unknown_locale(ctx, &name))
        }
    };
    let plain = match &args[0] {
        Value::Double(number) => double_digits(rounded_double(*number, digits.into()), digits),
        other => {
            let mut out = Vec::new();
            kit::decimal(other).round(digits.into()).rescale(digits).write_text(&mut out);
            String::from_utf8_lossy(&out).into_owned()
        }
    };
    Ok(Value::from(grouped(&plain, &locale).as_str()))
}

fn unknown_locale(ctx: &mut FunctionContext<'_>, name: &str) -> Locale {
    ctx.diagnostics.warn(ErrorCode::UNKNOWN_LOCALE, &[&name]);
    LOCALES[0]
}

/// The shortest digits that read back as the number, zero-filled to `digits` after the point.
fn double_digits(number: f64, digits: u8) -> String {
    let mut text = format!("{number}");
    let fraction = text.find('.').map(|at| text.len() - at - 1);
    if digits > 0 {
        if fraction.is_none() {
            text.push('.');
        }
        for _ in fraction.unwrap_or(0)..usize::from(digits) {
            text.push('0');
        }
    }
    text
}

/// Separators of a locale and the sizes of its groups.
#[derive(Clone, Copy)]
struct Locale {
    names: &'static [&'static str],
    point: &'static str,
    thousands: &'static str,
    /// Size of the last group and of those before it; 0 for one group only.
    groups: (usize, usize),
}

const LOCALES: &[Locale] = &[
    Locale {
        names: &[
            "en_US", "en_AU", "en_CA", "en_GB", "en_NZ", "en_PH", "en_ZA", "en_ZW", "zh_CN",
            "zh_TW", "zh_HK", "ja_JP", "ko_KR", "th_TH", "he_IL", "es_MX", "es_US", "es_DO",
            "es_GT", "es_HN", "es_NI", "es_PA", "es_PE", "es_PR", "es_SV", "ar_AE", "ar_BH",
            "ar_DZ", "ar_EG", "ar_IQ", "ar_JO", "ar_KW", "ar_LB", "ar_LY", "ar_MA", "ar_OM",
            "ar_QA", "ar_SD", "ar_SY", "ar_TN", "ar_YE", "ms_MY", "gu_IN", "hi_IN", "ur_PK",
        ],
        point: ".",
        thousands: ",",
        groups: (3, 3),
    },
    Locale { names: &["en_IN", "ta_IN", "te_IN"], point: ".", thousands: ",", groups: (3, 2) },
    Locale {
        names: &[
            "de_DE", "de_BE", "lt_LT", "ru_UA", "sq_AL", "uk_UA", "de_LU", "da_DK", "es_AR",
            "es_BO", "es_CL", "es_CO", "es_EC", "es_ES", "es_PY", "es_UY", "es_VE", "fo_FO",
            "hu_HU", "id_ID", "is_IS", "mn_MN", "no_NO", "nb_NO", "ro_RO", "tr_TR", "vi_VN",
            "be_BY",
        ],
        point: ",",
        thousands: ".",
        groups: (3, 3),
    },
    Locale {
        names: &[
            "cs_CZ", "es_CR", "et_EE", "fi_FI", "lv_LV", "mk_MK", "ru_RU", "sk_SK", "sv_FI",
            "sv_SE",
        ],
        point: ",",
        thousands: " ",
        groups: (3, 3),
    },
    Locale { names: &["de_CH"], point: ".", thousands: "'", groups: (3, 3) },
    Locale { names: &["it_CH", "rm_CH"], point: ",", thousands: "'", groups: (3, 3) },
    Locale {
        names: &[
            "fr_FR", "fr_BE", "el_GR", "nl_BE", "nl_NL", "fr_CA", "fr_CH", "fr_LU", "de_AT",
            "pt_PT", "pt_BR", "pl_PL", "it_IT", "hr_HR", "bg_BG", "ca_ES", "eu_ES", "gl_ES",
            "sl_SI",
        ],
        point: ",",
        thousands: "",
        groups: (0, 0),
    },
    Locale { names: &["ar_SA", "sr_RS"], point: ".", thousands: "", groups: (0, 0) },
];

fn find_locale(name: &str) -> Option<Locale> {
    let matches =
        |locale: &&Locale| locale.names.iter().any(|known| known.eq_ignore_ascii_case(name));
    LOCALES.iter().find(matches).copied()
}

fn grouped(plain: &str, locale: &Locale) -> String {
    let (whole, fraction) = plain.split_once('.').map_or((plain, None), |(w, f)| (w, Some(f)));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let all_zero = plain.bytes().all(|byte| !byte.is_ascii_digit() || byte == b'0');
    let mut out = String::from(if all_zero { "" } else { sign });
    let (last, before) = locale.groups;
    for (index, digit) in whole.chars().enumerate() {
        let left = whole.len() - index;
        let border =
            index > 0 && last > 0 && (left == last || (left > last && (left - last) % before == 0));
        if border {
            out.push_str(locale.thousands);
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push_str(locale.point);
        out.push_str(fraction);
    }
    out
}
