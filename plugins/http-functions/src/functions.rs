//! `http_get`, `http_post`, `http_put`, `http_delete`: the body of an answer as a text.

use std::borrow::Cow;
use std::sync::Arc;

use errors::{Result, err};
use plugin_api::kit::{self, scalar};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, FunctionContext, ScalarFunction,
    SessionServices,
};
use types::{TypeKind, Value};
use ureq::http::header::CONTENT_TYPE;
use ureq::http::{HeaderMap, Method};
use ureq::unversioned::resolver::DefaultResolver;

use crate::failure::Failure;
use crate::request::{self, Answer, Request, agent};
use crate::url::Url;
use crate::wait::perform_and_wait;
use crate::{PRIVILEGE, settings};

/// Characters of the longest answer.
pub(crate) const CHARACTERS_MAX: u64 = 1 << 29;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "HTTP_GET",
        Arity::exactly(1),
        "HTTP_GET(url)\nThe body of the answer to a GET request.",
        |ctx, args| bind(ctx, args, Method::GET),
    )
    .volatile()
    .one_thread(),
    scalar(
        "HTTP_POST",
        Arity::between(2, 3),
        "HTTP_POST(url, body [, content_type])\nThe body of the answer to a POST request.",
        |ctx, args| bind(ctx, args, Method::POST),
    )
    .volatile()
    .one_thread(),
    scalar(
        "HTTP_PUT",
        Arity::between(2, 3),
        "HTTP_PUT(url, body [, content_type])\nThe body of the answer to a PUT request.",
        |ctx, args| bind(ctx, args, Method::PUT),
    )
    .volatile()
    .one_thread(),
    scalar(
        "HTTP_DELETE",
        Arity::exactly(1),
        "HTTP_DELETE(url)\nThe body of the answer to a DELETE request.",
        |ctx, args| bind(ctx, args, Method::DELETE),
    )
    .volatile()
    .one_thread(),
];

fn bind(ctx: &BindContext, args: &[ArgInfo], method: Method) -> Result<BoundFunction> {
    let mut ty = kit::text_type(CHARACTERS_MAX, ctx.collation_connection);
    ty.nullable = true;
    // The type of a body that is not told otherwise.
    let is_json = args.get(1).is_some_and(|body| body.ty.kind == TypeKind::Json);
    let content = if is_json { "application/json" } else { "text/plain; charset=utf-8" };
    let name = format!("http_{}", method.as_str().to_ascii_lowercase());
    Ok(BoundFunction::new(ty, vec![Coercion::Text], move |ctx, args| {
        let answer = call(ctx, &name, || {
            let mut headers = HeaderMap::new();
            let body = args.get(1).map(|body| kit::bytes(body).to_vec());
            if body.is_some() {
                let content = args.get(2).map_or(Cow::Borrowed(content), kit::text);
                let (key, value) = request::header(CONTENT_TYPE.as_str(), &content)?;
                headers.insert(key, value);
            }
            let url = Url::parse(&kit::text(&args[0]))?;
            Ok(Request { method: method.clone(), url, headers, body })
        })?;
        if !answer.status.is_success() {
            let failure = Failure::new(format!("the server answered {}", answer.status));
            return Err(failure.into_error(&name));
        }
        Ok(Value::text(&text_of(&answer)))
    }))
}

/// Makes the request that `make` gives, if the account may. `name`: the function, for messages.
///
/// # Errors
/// 1227; 3200 with the reason of the failure; 1317, 3024.
pub(crate) fn call(
    ctx: &mut FunctionContext<'_>,
    name: &str,
    make: impl FnOnce() -> std::result::Result<Request, Failure>,
) -> Result<Answer> {
    let session: &dyn SessionServices = ctx.session;
    if !session.has_privilege(PRIVILEGE) {
        return Err(err!(SPECIFIC_ACCESS_DENIED_ERROR, format!("SUPER or {PRIVILEGE}")));
    }
    let failed = |failure: Failure| failure.into_error(name);
    let limits = settings::limits(session).map_err(failed)?;
    let request = make().map_err(failed)?;
    if !limits.allowed.may_resolve(&request.url.host, request.url.port) {
        let host = &request.url.host;
        return Err(failed(Failure::new(format!("'{host}' is not among http_allowed_hosts"))));
    }
    let agent = agent(&limits, Arc::new(DefaultResolver::default()));
    perform_and_wait(agent, limits, request, session, name)
}

/// The body as text: in the character set that the answer names; bytes that are not characters of it are replaced.
pub(crate) fn text_of(answer: &Answer) -> Cow<'_, str> {
    let content = answer.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let named = content.and_then(|content| {
        let lower = content.to_ascii_lowercase();
        let (_, rest) = lower.split_once("charset=")?;
        let name = rest.split([';', ' ']).next()?.trim_matches('"').to_owned();
        Some(name)
    });
    let set = match named.as_deref() {
        Some("iso-8859-1" | "windows-1252" | "latin1") => charset::charset_by_name("latin1"),
        Some("iso-8859-2" | "latin2") => charset::charset_by_name("latin2"),
        Some("windows-1250") => charset::charset_by_name("cp1250"),
        Some("windows-1251") => charset::charset_by_name("cp1251"),
        Some("shift_jis") => charset::charset_by_name("cp932"),
        Some("gb18030" | "gbk" | "gb2312") => charset::charset_by_name("gb18030"),
        _ => None,
    };
    match set {
        Some(set) => {
            let text = set.decode(&answer.body).bytes;
            Cow::Owned(String::from_utf8_lossy(&text).into_owned())
        }
        None => String::from_utf8_lossy(&answer.body),
    }
}
