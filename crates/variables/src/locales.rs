//! Locales that `lc_time_names` accepts. Knows no languages.

use errors::{Error, Result, bail};

/// Locales whose names of days and months are supported.
#[rustfmt::skip]
const SPOKEN: &[&str] = &[
    "bg_BG", "cs_CZ", "da_DK", "de_AT", "de_BE", "de_CH", "de_DE", "de_LU", "el_GR", "en_AU",
    "en_CA", "en_GB", "en_IN", "en_NZ", "en_PH", "en_US", "en_ZA", "en_ZW", "es_AR", "es_BO",
    "es_CL", "es_CO", "es_CR", "es_DO", "es_EC", "es_ES", "es_GT", "es_HN", "es_MX", "es_NI",
    "es_PA", "es_PE", "es_PR", "es_PY", "es_SV", "es_US", "es_UY", "es_VE", "fi_FI", "fr_BE",
    "fr_CA", "fr_CH", "fr_FR", "fr_LU", "hr_HR", "hu_HU", "it_CH", "it_IT", "ja_JP", "ko_KR",
    "nb_NO", "nl_BE", "nl_NL", "no_NO", "pl_PL", "pt_BR", "pt_PT", "ro_RO", "ru_RU", "sk_SK",
    "sv_FI", "sv_SE", "tr_TR", "uk_UA", "zh_CN", "zh_HK", "zh_TW",
];

/// Locales of the reference whose names are not supported yet.
#[rustfmt::skip]
const UNSPOKEN: &[&str] = &[
    "ar_AE", "ar_SA", "be_BY", "ca_ES", "et_EE", "eu_ES", "fo_FO", "gl_ES", "gu_IN", "he_IL",
    "hi_IN", "id_ID", "is_IS", "lt_LT", "lv_LV", "mk_MK", "mn_MN", "ms_MY", "rm_CH", "ru_UA",
    "sl_SI", "sq_AL", "sr_RS", "ta_IN", "te_IN", "th_TH", "ur_PK", "vi_VN",
];

/// Checks the name of a locale.
///
/// # Errors
/// 1649 for an unknown locale, 1235 for one whose language is not supported.
pub fn check_locale(name: &str) -> Result<()> {
    let is_among = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    if is_among(UNSPOKEN) {
        return Err(Error::not_supported(format!("lc_time_names = {name}")));
    }
    if !is_among(SPOKEN) {
        bail!(UNKNOWN_LOCALE, name);
    }
    Ok(())
}
