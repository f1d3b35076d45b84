//! Percent escapes of paths and queries.

/// Percent-decoded text; `None` when it is not UTF-8 or an escape is incomplete.
pub fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let digits = std::str::from_utf8(&digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// The pairs of a query string; `None` when one cannot be decoded: a condition that is left out would change what a call does.
pub fn query(text: &str) -> Option<Vec<(String, String)>> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    let decode = |part: &str| decoded(&part.replace('+', " "));
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(name)?, decode(value)?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded() {
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        let pairs = [pair("a", "1"), pair("b", "x y!"), pair("c", "")];
        assert_eq!(query("a=1&b=x+y%21&c"), Some(pairs.to_vec()));
        assert_eq!(query("a=1&d=%"), None);
        assert_eq!(query("a=%ff"), None);
        assert_eq!(decoded("%+1"), None);
    }
}
