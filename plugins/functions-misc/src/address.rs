//! IPv4 and IPv6 addresses as numbers, bytes and text.

use std::net::{Ipv4Addr, Ipv6Addr};

use errors::{ErrorCode, Result};
use plugin_api::kit::{self, any_nullable, scalar, text_type};
use plugin_api::{
    ArgInfo, Arguments, Arity, BindContext, BoundFunction, Coercion, FunctionContext,
    ScalarFunction,
};
use types::{DataType, SqlBytes, Value};

/// The announced lengths of IPv4 and IPv6 addresses as text.
const V4_LENGTH: u64 = 31;
const V6_LENGTH: u64 = 39;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "INET_ATON",
        Arity::exactly(1),
        "INET_ATON(expr)\nAn IPv4 address as a number.",
        bind_inet_aton,
    ),
    scalar(
        "INET_NTOA",
        Arity::exactly(1),
        "INET_NTOA(expr)\nA number as an IPv4 address.",
        bind_inet_ntoa,
    )
    .numbers(Arguments::ALL),
    scalar(
        "INET6_ATON",
        Arity::exactly(1),
        "INET6_ATON(expr)\nAn IPv4 or IPv6 address as bytes.",
        bind_inet6_aton,
    ),
    scalar(
        "INET6_NTOA",
        Arity::exactly(1),
        "INET6_NTOA(expr)\n4 or 16 bytes as an address.",
        bind_inet6_ntoa,
    ),
    scalar(
        "IS_IPV4",
        Arity::exactly(1),
        "IS_IPV4(expr)\nWhether a text is an IPv4 address.",
        |_, args| Ok(bind_test(args, |bytes| v4(bytes).is_some())),
    ),
    scalar(
        "IS_IPV6",
        Arity::exactly(1),
        "IS_IPV6(expr)\nWhether a text is an IPv6 address.",
        |_, args| Ok(bind_test(args, |bytes| v6(bytes).is_some())),
    ),
    scalar(
        "IS_IPV4_COMPAT",
        Arity::exactly(1),
        "IS_IPV4_COMPAT(expr)\nWhether 16 bytes are an IPv4-compatible address.",
        |_, args| {
            Ok(bind_bytes_test(args, |bytes| {
                bytes.len() == 16
                    && bytes[..12] == [0; 12]
                    && bytes[12..] != [0; 4]
                    && bytes[12..] != [0, 0, 0, 1]
            }))
        },
    ),
    scalar(
        "IS_IPV4_MAPPED",
        Arity::exactly(1),
        "IS_IPV4_MAPPED(expr)\nWhether 16 bytes are an IPv4-mapped address.",
        |_, args| {
            Ok(bind_bytes_test(args, |bytes| {
                bytes.len() == 16 && bytes[..10] == [0; 10] && bytes[10..12] == [0xFF; 2]
            }))
        },
    ),
];

fn v4(text: &[u8]) -> Option<Ipv4Addr> {
    let text = std::str::from_utf8(text).ok()?;
    let parts: Vec<&str> = text.split('.').collect();
    let [a, b, c, d] = parts[..] else { return None };
    let octet = |part: &str| {
        let digits = part.len() <= 3 && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<u8>().ok().filter(|_| digits)
    };
    Some(Ipv4Addr::new(octet(a)?, octet(b)?, octet(c)?, octet(d)?))
}

/// The four bytes at the end may be written as an IPv4 address, whose numbers may begin with zeros.
fn v6(text: &[u8]) -> Option<Ipv6Addr> {
    let text = std::str::from_utf8(text).ok()?;
    if !text.contains('.') {
        return text.parse().ok();
    }
    let end = text.rfind(':')? + 1;
    let [a, b, c, d] = v4(&text.as_bytes()[end..])?.octets();
    format!("{}{a:02x}{b:02x}:{c:02x}{d:02x}", &text[..end]).parse().ok()
}

fn warn(ctx: &mut FunctionContext<'_>, kind: &str, value: &str, name: &str) -> Value {
    ctx.diagnostics.warn(ErrorCode::WRONG_VALUE_FOR_TYPE, &[&kind, &value, &name]);
    Value::Null
}

fn quoted(bytes: &[u8]) -> String {
    format!("'{}'", String::from_utf8_lossy(bytes))
}

fn bind_inet_aton(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    Ok(BoundFunction::new(DataType::bigint_unsigned(), vec![Coercion::Text], |ctx, args| {
        let text = kit::bytes(&args[0]);
        Ok(match short_v4(text) {
            Some(number) => Value::UInt(number.into()),
            None => warn(ctx, "string", &quoted(text), "inet_aton"),
        })
    }))
}

/// Fewer than four parts leave out zeros before the last one: `1.2` is `1.0.0.2`.
fn short_v4(text: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(text).ok()?;
    let parts: Vec<&str> = text.split('.').collect();
    if parts.len() > 4 {
        return None;
    }
    let mut number = 0u32;
    for (at, part) in parts.iter().enumerate() {
        if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let octet: u8 = part.parse().ok()?;
        let last = at + 1 == parts.len();
        number |= u32::from(octet) << if last { 0 } else { 24 - 8 * at };
    }
    Some(number)
}

fn bind_inet_ntoa(ctx: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = text_type(V4_LENGTH, ctx.collation_connection);
    Ok(BoundFunction::new(ty, vec![Coercion::Integer], |ctx, args| {
        Ok(match u32::try_from(kit::integer(&args[0])) {
            Ok(number) => Value::from(Ipv4Addr::from(number).to_string().as_str()),
            Err(_) => warn(ctx, "integer", &kit::argument_text(&args[0]), "inet_ntoa"),
        })
    }))
}

fn bind_inet6_aton(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    Ok(BoundFunction::new(DataType::varbinary(16), vec![Coercion::Text], |ctx, args| {
        let text = kit::bytes(&args[0]);
        if let Some(address) = v4(text) {
            return Ok(Value::Bytes(SqlBytes::new(&address.octets())));
        }
        Ok(match v6(text) {
            Some(address) => Value::Bytes(SqlBytes::new(&address.octets())),
            None => warn(ctx, "string", &quoted(text), "inet6_aton"),
        })
    }))
}

fn bind_inet6_ntoa(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let binary = args[0].ty.is_binary();
    let ty = text_type(V6_LENGTH, ctx.collation_connection);
    Ok(BoundFunction::new(ty, vec![Coercion::AsIs], move |ctx, args| {
        let bytes = kit::bytes(&args[0]);
        let text = match (<[u8; 4]>::try_from(bytes), <[u8; 16]>::try_from(bytes)) {
            (Ok(octets), _) if binary => Ipv4Addr::from(octets).to_string(),
            (_, Ok(octets)) if binary => v6_text(octets),
            _ => return Ok(warn(ctx, "string", &quoted(bytes), "inet6_ntoa")),
        };
        Ok(Value::from(text.as_str()))
    }))
}

fn v6_text(octets: [u8; 16]) -> String {
    let compatible = octets[..12] == [0; 12] && octets[12..14] != [0; 2];
    if compatible {
        return format!("::{}", Ipv4Addr::new(octets[12], octets[13], octets[14], octets[15]));
    }
    let address = Ipv6Addr::from(octets);
    if address.to_ipv4_mapped().is_some() {
        return address.to_string();
    }
    groups_text(address.segments())
}

/// The first of the longest runs of zeros is left out, even a single zero.
fn groups_text(groups: [u16; 8]) -> String {
    let mut gap = 0..0;
    let mut start = 0;
    for (at, group) in groups.iter().enumerate() {
        if *group != 0 {
            start = at + 1;
        } else if at + 1 - start > gap.len() {
            gap = start..at + 1;
        }
    }
    let text = |groups: &[u16]| {
        groups.iter().map(|group| format!("{group:x}")).collect::<Vec<_>>().join(":")
    };
    match gap.is_empty() {
        true => text(&groups),
        false => format!("{}::{}", text(&groups[..gap.start]), text(&groups[gap.end..])),
    }
}

fn bind_test(args: &[ArgInfo], test: fn(&[u8]) -> bool) -> BoundFunction {
    let ty = kit::integer_type(1, any_nullable(args));
    BoundFunction::new(ty, vec![Coercion::Text], move |_, args| {
        Ok(Value::bool(test(kit::bytes(&args[0]))))
    })
}

fn bind_bytes_test(args: &[ArgInfo], test: fn(&[u8]) -> bool) -> BoundFunction {
    let (binary, coercion) = match args[0].ty.as_fixed() {
        Some(kind) => (true, Coercion::To(DataType::varbinary(kind.bytes() as u32))),
        None => (args[0].ty.is_binary(), Coercion::AsIs),
    };
    let ty = kit::integer_type(1, any_nullable(args));
    BoundFunction::new(ty, vec![coercion], move |_, args| {
        Ok(Value::bool(binary && test(kit::bytes(&args[0]))))
    })
}
