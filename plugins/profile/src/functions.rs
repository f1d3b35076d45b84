//! The table function `flame_graph`: PROFILE_SAMPLES of a user, a digest or a time as one graph.

use std::sync::Arc;

use errors::{Error, ErrorCode, Result, bail, err};
use plugin_api::kit::{self, json_type, scalar, text_type};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, FunctionContext, SessionServices,
    TableFunction,
};
use types::{CollationId, DataType, JsonValue, Value};

use crate::STATE;
use crate::folded::{Folded, clean};
use crate::sample::Sample;
use crate::sampler::Sampler;
use crate::statement::Format;
use crate::svg;

/// Characters of a row.
const ROW_CHARACTERS: u64 = 1 << 24;

pub(crate) const FLAME_GRAPH: TableFunction = TableFunction {
    rows: scalar(
        "FLAME_GRAPH",
        Arity::between(1, 5),
        "FLAME_GRAPH(format [, user [, digest [, from [, until]]]])\nA table function: the samples of data_dictionary.PROFILE_SAMPLES as folded stacks (FOLDED, a row for each) or as a picture (SVG). NULL: any. Times are UTC.",
        bind,
    )
    .volatile()
    .one_thread(),
    columns,
};

fn columns() -> Vec<(&'static str, DataType)> {
    vec![("graph", text_type(ROW_CHARACTERS, CollationId::UTF8MB4_0900_AI_CI))]
}

fn bind(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let coercions =
        [Coercion::Text, Coercion::Text, Coercion::Text, Coercion::DateTime, Coercion::DateTime];
    let bound = BoundFunction::new(json_type(), coercions[..args.len()].to_vec(), graph);
    Ok(bound.with_nulls())
}

fn graph(ctx: &mut FunctionContext<'_>, args: &[Value]) -> Result<Value> {
    let session: &dyn SessionServices = ctx.session;
    if !session.has_privilege("PROCESS") {
        return Err(err!(SPECIFIC_ACCESS_DENIED_ERROR, "PROCESS"));
    }
    let state = session.shared_state(STATE).and_then(|state| state.downcast::<Sampler>().ok());
    let sampler: Arc<Sampler> =
        state.ok_or_else(|| Error::with(ErrorCode::PLUGIN_IS_NOT_LOADED, &[&"profile"]))?;
    let given = |at: usize| args.get(at).filter(|value| !value.is_null());
    let (user, digest) = (given(1).map(kit::text), given(2).map(kit::text));
    let micros = |at: usize| {
        let Some(Value::DateTime(time)) = given(at) else { return None };
        time.to_unix_micros()
    };
    let (from, until) = (micros(3), micros(4));
    let is_wanted = |sample: &Sample| {
        user.as_deref().is_none_or(|user| *user == *sample.user)
            && digest.as_deref().is_none_or(|digest| *digest == *sample.digest.number)
            && from.is_none_or(|from| from <= sample.at_micros)
            && until.is_none_or(|until| sample.at_micros < until)
    };
    let mut folded = Folded::default();
    for sample in sampler.samples.all().iter().filter(|sample| is_wanted(sample)) {
        folded.add(&format!("{};{}", clean(&sample.digest.text), sample.stack), 1);
    }
    let texts = match Format::named(given(0).map(kit::text).as_deref())? {
        Format::Folded => folded.lines(),
        Format::Svg => vec![svg::draw_samples(&folded)],
        Format::Table => bail!(WRONG_ARGUMENTS, "FLAME_GRAPH"),
    };
    let row = |text: &String| JsonValue::Array(vec![JsonValue::string(text.as_bytes())]);
    kit::json_document(&JsonValue::Array(texts.iter().map(row).collect()))
}
