//! Names of days and months in the languages of `lc_time_names`. Independent of functions.

use plugin_api::FunctionContext;
use plugin_api::kit;
use types::Date;

/// Names of days and months. Lists are separated by `|`; weeks begin on Monday.
pub(crate) struct Language {
    /// The locales that speak it.
    names: &'static str,
    months: &'static str,
    short_months: &'static str,
    days: &'static str,
    short_days: &'static str,
}

impl Language {
    /// The language of the session.
    pub(crate) fn of(ctx: &FunctionContext<'_>) -> &'static Language {
        let Some(value) = ctx.session.system_variable("lc_time_names") else { return &ENGLISH };
        let name = kit::text(&value);
        if name.starts_with("en") {
            return &ENGLISH;
        }
        let speaks = |language: &&Language| {
            language.names.split(' ').any(|known| known.eq_ignore_ascii_case(&name))
        };
        LANGUAGES.iter().find(speaks).unwrap_or(&ENGLISH)
    }

    /// The month of a date; `None` for month 0.
    pub(crate) fn month(&self, date: Date) -> Option<&'static str> {
        self.months.split('|').nth((date.month() as usize).checked_sub(1)?)
    }

    /// The same in short.
    pub(crate) fn short_month(&self, date: Date) -> Option<&'static str> {
        self.short_months.split('|').nth((date.month() as usize).checked_sub(1)?)
    }

    /// The day of the week.
    pub(crate) fn day(&self, date: Date) -> Option<&'static str> {
        self.days.split('|').nth(date.weekday() as usize)
    }

    /// The same in short.
    pub(crate) fn short_day(&self, date: Date) -> Option<&'static str> {
        self.short_days.split('|').nth(date.weekday() as usize)
    }
}

/// The language for reading dates, whatever the output language is.
pub(crate) static ENGLISH: Language = Language {
    names: "en_AU en_CA en_GB en_IN en_NZ en_PH en_US en_ZA en_ZW",
    months: "January|February|March|April|May|June|July|August|September|October|November|December",
    short_months: "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec",
    days: "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday",
    short_days: "Mon|Tue|Wed|Thu|Fri|Sat|Sun",
};

#[rustfmt::skip]
static LANGUAGES: &[Language] = &[
    Language {
        names: "bg_BG",
        months: "януари|февруари|март|април|май|юни|юли|август|септември|октомври|ноември|декември",
        short_months: "яну|фев|мар|апр|май|юни|юли|авг|сеп|окт|ное|дек",
        days: "понеделник|вторник|сряда|четвъртък|петък|събота|неделя",
        short_days: "пн|вт|ср|чт|пт|сб|нд",
    },
    Language {
        names: "cs_CZ",
        months: "leden|únor|březen|duben|květen|červen|červenec|srpen|září|říjen|listopad|prosinec",
        short_months: "led|úno|bře|dub|kvě|čen|čec|srp|zář|říj|lis|pro",
        days: "Pondělí|Úterý|Středa|Čtvrtek|Pátek|Sobota|Neděle",
        short_days: "Po|Út|St|Čt|Pá|So|Ne",
    },
    Language {
        names: "da_DK",
        months: "januar|februar|marts|april|maj|juni|juli|august|september|oktober|november|december",
        short_months: "jan|feb|mar|apr|maj|jun|jul|aug|sep|okt|nov|dec",
        days: "mandag|tirsdag|onsdag|torsdag|fredag|lørdag|søndag",
        short_days: "man|tir|ons|tor|fre|lør|søn",
    },
    Language {
        names: "de_AT",
        months: "Jänner|Feber|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember",
        short_months: "Jän|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez",
        days: "Montag|Dienstag|Mittwoch|Donnerstag|Freitag|Samstag|Sonntag",
        short_days: "Mon|Die|Mit|Don|Fre|Sam|Son",
    },
    Language {
        names: "de_BE de_CH de_DE de_LU",
        months: "Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember",
        short_months: "Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez",
        days: "Montag|Dienstag|Mittwoch|Donnerstag|Freitag|Samstag|Sonntag",
        short_days: "Mo|Di|Mi|Do|Fr|Sa|So",
    },
    Language {
        names: "el_GR",
        months: "Ιανουάριος|Φεβρουάριος|Μάρτιος|Απρίλιος|Μάιος|Ιούνιος|Ιούλιος|Αύγουστος|Σεπτέμβριος|Οκτώβριος|Νοέμβριος|Δεκέμβριος",
        short_months: "Ιαν|Φεβ|Μάρ|Απρ|Μάι|Ιούν|Ιούλ|Αύγ|Σεπ|Οκτ|Νοέ|Δεκ",
        days: "Δευτέρα|Τρίτη|Τετάρτη|Πέμπτη|Παρασκευή|Σάββατο|Κυριακή",
        short_days: "Δευ|Τρί|Τετ|Πέμ|Παρ|Σάβ|Κυρ",
    },
    Language {
        names: "es_AR es_BO es_CL es_CO es_CR es_DO es_EC es_ES es_GT es_HN es_MX es_NI es_PA es_PE es_PR es_PY es_SV es_US es_UY es_VE",
        months: "enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre",
        short_months: "ene|feb|mar|abr|may|jun|jul|ago|sep|oct|nov|dic",
        days: "lunes|martes|miércoles|jueves|viernes|sábado|domingo",
        short_days: "lun|mar|mié|jue|vie|sáb|dom",
    },
    Language {
        names: "fi_FI",
        months: "tammikuu|helmikuu|maaliskuu|huhtikuu|toukokuu|kesäkuu|heinäkuu|elokuu|syyskuu|lokakuu|marraskuu|joulukuu",
        short_months: "tammi\u{a0}|helmi\u{a0}|maalis|huhti\u{a0}|touko\u{a0}|kesä\u{a0}\u{a0}|heinä\u{a0}|elo\u{a0}\u{a0}\u{a0}|syys\u{a0}\u{a0}|loka\u{a0}\u{a0}|marras|joulu\u{a0}",
        days: "maanantai|tiistai|keskiviikko|torstai|perjantai|lauantai|sunnuntai",
        short_days: "ma|ti|ke|to|pe|la|su",
    },
    Language {
        names: "fr_BE fr_CA fr_CH fr_FR fr_LU",
        months: "janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre",
        short_months: "jan|fév|mar|avr|mai|jun|jui|aoû|sep|oct|nov|déc",
        days: "lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche",
        short_days: "lun|mar|mer|jeu|ven|sam|dim",
    },
    Language {
        names: "hr_HR",
        months: "Siječanj|Veljača|Ožujak|Travanj|Svibanj|Lipanj|Srpanj|Kolovoz|Rujan|Listopad|Studeni|Prosinac",
        short_months: "Sij|Vel|Ožu|Tra|Svi|Lip|Srp|Kol|Ruj|Lis|Stu|Pro",
        days: "Ponedjeljak|Utorak|Srijeda|Četvrtak|Petak|Subota|Nedjelja",
        short_days: "Pon|Uto|Sri|Čet|Pet|Sub|Ned",
    },
    Language {
        names: "hu_HU",
        months: "január|február|március|április|május|június|július|augusztus|szeptember|október|november|december",
        short_months: "jan|feb|már|ápr|máj|jún|júl|aug|sze|okt|nov|dec",
        days: "hétfő|kedd|szerda|csütörtök|péntek|szombat|vasárnap",
        short_days: "h|k|sze|cs|p|szo|v",
    },
    Language {
        names: "it_CH it_IT",
        months: "gennaio|febbraio|marzo|aprile|maggio|giugno|luglio|agosto|settembre|ottobre|novembre|dicembre",
        short_months: "gen|feb|mar|apr|mag|giu|lug|ago|set|ott|nov|dic",
        days: "lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica",
        short_days: "lun|mar|mer|gio|ven|sab|dom",
    },
    Language {
        names: "ja_JP",
        months: "1月|2月|3月|4月|5月|6月|7月|8月|9月|10月|11月|12月",
        short_months: " 1月| 2月| 3月| 4月| 5月| 6月| 7月| 8月| 9月|10月|11月|12月",
        days: "月曜日|火曜日|水曜日|木曜日|金曜日|土曜日|日曜日",
        short_days: "月|火|水|木|金|土|日",
    },
    Language {
        names: "ko_KR",
        months: "일월|이월|삼월|사월|오월|유월|칠월|팔월|구월|시월|십일월|십이월",
        short_months: " 1월| 2월| 3월| 4월| 5월| 6월| 7월| 8월| 9월|10월|11월|12월",
        days: "월요일|화요일|수요일|목요일|금요일|토요일|일요일",
        short_days: "월|화|수|목|금|토|일",
    },
    Language {
        names: "nb_NO no_NO",
        months: "januar|februar|mars|april|mai|juni|juli|august|september|oktober|november|desember",
        short_months: "jan|feb|mar|apr|mai|jun|jul|aug|sep|okt|nov|des",
        days: "mandag|tirsdag|onsdag|torsdag|fredag|lørdag|søndag",
        short_days: "man|tir|ons|tor|fre|lør|søn",
    },
    Language {
        names: "nl_BE nl_NL",
        months: "januari|februari|maart|april|mei|juni|juli|augustus|september|oktober|november|december",
        short_months: "jan|feb|mrt|apr|mei|jun|jul|aug|sep|okt|nov|dec",
        days: "maandag|dinsdag|woensdag|donderdag|vrijdag|zaterdag|zondag",
        short_days: "ma|di|wo|do|vr|za|zo",
    },
    Language {
        names: "pl_PL",
        months: "styczeń|luty|marzec|kwiecień|maj|czerwiec|lipiec|sierpień|wrzesień|październik|listopad|grudzień",
        short_months: "sty|lut|mar|kwi|maj|cze|lip|sie|wrz|paź|lis|gru",
        days: "poniedziałek|wtorek|środa|czwartek|piątek|sobota|niedziela",
        short_days: "pon|wto|śro|czw|pią|sob|nie",
    },
    Language {
        names: "pt_BR",
        months: "janeiro|fevereiro|março|abril|maio|junho|julho|agosto|setembro|outubro|novembro|dezembro",
        short_months: "Jan|Fev|Mar|Abr|Mai|Jun|Jul|Ago|Set|Out|Nov|Dez",
        days: "segunda|terça|quarta|quinta|sexta|sábado|domingo",
        short_days: "Seg|Ter|Qua|Qui|Sex|Sáb|Dom",
    },
    Language {
        names: "pt_PT",
        months: "Janeiro|Fevereiro|Março|Abril|Maio|Junho|Julho|Agosto|Setembro|Outubro|Novembro|Dezembro",
        short_months: "Jan|Fev|Mar|Abr|Mai|Jun|Jul|Ago|Set|Out|Nov|Dez",
        days: "Segunda|Terça|Quarta|Quinta|Sexta|Sábado|Domingo",
        short_days: "Seg|Ter|Qua|Qui|Sex|Sáb|Dom",
    },
    Language {
        names: "ro_RO",
        months: "Ianuarie|Februarie|Martie|Aprilie|Mai|Iunie|Iulie|August|Septembrie|Octombrie|Noiembrie|Decembrie",
        short_months: "ian|feb|mar|apr|mai|iun|iul|aug|sep|oct|nov|dec",
        days: "Luni|Marţi|Miercuri|Joi|Vineri|Sâmbătă|Duminică",
        short_days: "Lu|Ma|Mi|Jo|Vi|Sâ|Du",
    },
    Language {
        names: "ru_RU",
        months: "Января|Февраля|Марта|Апреля|Мая|Июня|Июля|Августа|Сентября|Октября|Ноября|Декабря",
        short_months: "Янв|Фев|Мар|Апр|Май|Июн|Июл|Авг|Сен|Окт|Ноя|Дек",
        days: "Понедельник|Вторник|Среда|Четверг|Пятница|Суббота|Воскресенье",
        short_days: "Пнд|Втр|Срд|Чтв|Птн|Сбт|Вск",
    },
    Language {
        names: "sk_SK",
        months: "január|február|marec|apríl|máj|jún|júl|august|september|október|november|december",
        short_months: "jan|feb|mar|apr|máj|jún|júl|aug|sep|okt|nov|dec",
        days: "Pondelok|Utorok|Streda|Štvrtok|Piatok|Sobota|Nedeľa",
        short_days: "Po|Ut|St|Št|Pi|So|Ne",
    },
    Language {
        names: "sv_FI sv_SE",
        months: "januari|februari|mars|april|maj|juni|juli|augusti|september|oktober|november|december",
        short_months: "jan|feb|mar|apr|maj|jun|jul|aug|sep|okt|nov|dec",
        days: "måndag|tisdag|onsdag|torsdag|fredag|lördag|söndag",
        short_days: "mån|tis|ons|tor|fre|lör|sön",
    },
    Language {
        names: "tr_TR",
        months: "Ocak|Şubat|Mart|Nisan|Mayıs|Haziran|Temmuz|Ağustos|Eylül|Ekim|Kasım|Aralık",
        short_months: "Oca|Şub|Mar|Nis|May|Haz|Tem|Ağu|Eyl|Eki|Kas|Ara",
        days: "Pazartesi|Salı|Çarşamba|Perşembe|Cuma|Cumartesi|Pazar",
        short_days: "Pzt|Sal|Çrş|Prş|Cum|Cts|Paz",
    },
    Language {
        names: "uk_UA",
        months: "Січень|Лютий|Березень|Квітень|Травень|Червень|Липень|Серпень|Вересень|Жовтень|Листопад|Грудень",
        short_months: "Січ|Лют|Бер|Кві|Тра|Чер|Лип|Сер|Вер|Жов|Лис|Гру",
        days: "Понеділок|Вівторок|Середа|Четвер|П'ятниця|Субота|Неділя",
        short_days: "Пнд|Втр|Срд|Чтв|Птн|Сбт|Ндл",
    },
    Language {
        names: "zh_CN zh_HK",
        months: "一月|二月|三月|四月|五月|六月|七月|八月|九月|十月|十一月|十二月",
        short_months: " 1月| 2月| 3月| 4月| 5月| 6月| 7月| 8月| 9月|10月|11月|12月",
        days: "星期一|星期二|星期三|星期四|星期五|星期六|星期日",
        short_days: "一|二|三|四|五|六|日",
    },
    Language {
        names: "zh_TW",
        months: "一月|二月|三月|四月|五月|六月|七月|八月|九月|十月|十一月|十二月",
        short_months: " 1月| 2月| 3月| 4月| 5月| 6月| 7月| 8月| 9月|10月|11月|12月",
        days: "週一|週二|週三|週四|週五|週六|週日",
        short_days: "一|二|三|四|五|六|日",
    },
];
