//! Data types of columns, parameters and casts.

use super::{PResult, Parser};
use crate::ast::*;
use crate::keywords::Kw;
use crate::lexer::Tok;

impl<'a> Parser<'a> {
    /// A type of a column, a parameter or a variable.
    pub(super) fn data_type(&mut self) -> PResult<DataType> {
        let start = self.start();
        let mut data_type = self.type_body()?;
        data_type.span = self.span_from(start);
        Ok(data_type)
    }

    fn type_body(&mut self) -> PResult<DataType> {
        use TypeName::*;
        let kw = self.kw();
        if let Some(name) = integer_of(kw) {
            self.bump();
            let mut data_type = DataType::new(name);
            data_type.length = self.opt_length()?;
            self.number_attributes(&mut data_type);
            return Ok(data_type);
        }
        let plain = |name| DataType::new(name);
        let data_type = match kw {
            Kw::DECIMAL
            | Kw::NUMERIC
            | Kw::DEC
            | Kw::FIXED
            | Kw::FLOAT
            | Kw::FLOAT4
            | Kw::FLOAT8
            | Kw::DOUBLE
            | Kw::REAL => return self.real_type(kw),
            Kw::CHAR
            | Kw::CHARACTER
            | Kw::VARCHAR
            | Kw::VARCHARACTER
            | Kw::NATIONAL
            | Kw::NCHAR
            | Kw::NVARCHAR
            | Kw::LONG => return self.character_type(kw),
            Kw::BINARY
            | Kw::VARBINARY
            | Kw::BLOB
            | Kw::BIT
            | Kw::DATETIME
            | Kw::TIME
            | Kw::TIMESTAMP
            | Kw::VECTOR
            | Kw::YEAR => return self.sized_type(kw),
            Kw::TEXT => {
                self.bump();
                let mut data_type = plain(Text);
                data_type.length = self.opt_length()?;
                self.charset_attributes(&mut data_type)?;
                return Ok(data_type);
            }
            Kw::TINYTEXT => return self.text_type(TinyText),
            Kw::MEDIUMTEXT => return self.text_type(MediumText),
            Kw::LONGTEXT => return self.text_type(LongText),
            Kw::ENUM | Kw::SET => {
                self.bump();
                let mut data_type = plain(if kw == Kw::ENUM { Enum } else { Set });
                data_type.values = self.paren_list(Self::bytes_or_hex)?;
                self.charset_attributes(&mut data_type)?;
                return Ok(data_type);
            }
            Kw::BOOL | Kw::BOOLEAN => plain(Bool),
            Kw::SERIAL => plain(Serial),
            Kw::DATE => plain(Date),
            Kw::TINYBLOB => plain(TinyBlob),
            Kw::MEDIUMBLOB => plain(MediumBlob),
            Kw::LONGBLOB => plain(LongBlob),
            Kw::JSON => plain(Json),
            Kw::UUID => plain(Uuid),
            Kw::INET4 => plain(Inet4),
            Kw::INET6 => plain(Inet6),
            _ => match geometry_of(kw) {
                Some(name) => plain(name),
                None => return self.fail(),
            },
        };
        self.bump();
        Ok(data_type)
    }

    fn text_type(&mut self, name: TypeName) -> PResult<DataType> {
        self.bump();
        let mut data_type = DataType::new(name);
        self.charset_attributes(&mut data_type)?;
        Ok(data_type)
    }

    fn opt_length(&mut self) -> PResult<Option<u64>> {
        if !self.eat_tok(Tok::LParen) {
            return Ok(None);
        }
        let length = self.number()?;
        self.expect_tok(Tok::RParen)?;
        Ok(Some(length))
    }

    /// `(p)`, `(p, d)`.
    fn opt_precision(&mut self, data_type: &mut DataType) -> PResult<()> {
        if !self.eat_tok(Tok::LParen) {
            return Ok(());
        }
        data_type.length = Some(self.number()?);
        if self.eat_tok(Tok::Comma) {
            data_type.decimals = Some(u32::try_from(self.number()?).unwrap_or(u32::MAX));
        }
        self.expect_tok(Tok::RParen)
    }

    fn number_attributes(&mut self, data_type: &mut DataType) {
        while let Some(word) = self.eat_one_of(&[Kw::UNSIGNED, Kw::SIGNED, Kw::ZEROFILL]) {
            match word {
                Kw::UNSIGNED => data_type.unsigned = true,
                Kw::ZEROFILL => data_type.zerofill = true,
                _ => {}
            }
        }
    }

    fn real_type(&mut self, kw: Kw) -> PResult<DataType> {
        self.bump();
        let name = match kw {
            Kw::DOUBLE => {
                self.eat(Kw::PRECISION);
                TypeName::Double
            }
            Kw::FLOAT8 => TypeName::Double,
            Kw::REAL if !self.options.real_as_float => TypeName::Double,
            Kw::REAL | Kw::FLOAT | Kw::FLOAT4 => TypeName::Float,
            _ => TypeName::Decimal,
        };
        let mut data_type = DataType::new(name);
        self.opt_precision(&mut data_type)?;
        self.number_attributes(&mut data_type);
        Ok(data_type)
    }

    fn sized_type(&mut self, kw: Kw) -> PResult<DataType> {
        self.bump();
        let name = match kw {
            Kw::BINARY => TypeName::Binary,
            Kw::VARBINARY => TypeName::Varbinary,
            Kw::BLOB => TypeName::Blob,
            Kw::BIT => TypeName::Bit,
            Kw::DATETIME => TypeName::Datetime,
            Kw::TIME => TypeName::Time,
            Kw::TIMESTAMP => TypeName::Timestamp,
            Kw::VECTOR => TypeName::Vector,
            _ => TypeName::Year,
        };
        let mut data_type = DataType::new(name);
        if name == TypeName::Varbinary && !self.at_tok(Tok::LParen) {
            return self.fail();
        }
        data_type.length = self.opt_length()?;
        if name == TypeName::Year {
            self.number_attributes(&mut data_type);
        }
        Ok(data_type)
    }

    fn character_type(&mut self, kw: Kw) -> PResult<DataType> {
        self.bump();
        let national = matches!(kw, Kw::NATIONAL | Kw::NCHAR | Kw::NVARCHAR);
        let name = match kw {
            Kw::VARCHAR | Kw::VARCHARACTER | Kw::NVARCHAR => TypeName::Varchar,
            Kw::NATIONAL => match self.kw() {
                Kw::VARCHAR | Kw::VARCHARACTER => {
                    self.bump();
                    TypeName::Varchar
                }
                Kw::CHAR | Kw::CHARACTER => {
                    self.bump();
                    self.opt_varying(TypeName::Char)
                }
                _ => return self.fail(),
            },
            Kw::LONG => match self.kw() {
                Kw::VARBINARY => {
                    self.bump();
                    return Ok(DataType::new(TypeName::MediumBlob));
                }
                Kw::VARCHAR | Kw::VARCHARACTER => {
                    self.bump();
                    TypeName::MediumText
                }
                Kw::CHAR | Kw::CHARACTER => {
                    self.bump();
                    self.expect(Kw::VARYING)?;
                    TypeName::MediumText
                }
                _ => TypeName::MediumText,
            },
            Kw::NCHAR if self.eat(Kw::VARCHAR) => TypeName::Varchar,
            _ => self.opt_varying(TypeName::Char),
        };
        let mut data_type = DataType::new(name);
        if name == TypeName::Varchar && !self.at_tok(Tok::LParen) {
            return self.fail();
        }
        if name != TypeName::MediumText {
            data_type.length = self.opt_length()?;
        }
        if national {
            data_type.charset = Some(Ident::new("utf8mb3"));
            data_type.binary = self.eat(Kw::BINARY);
        } else {
            self.charset_attributes(&mut data_type)?;
        }
        Ok(data_type)
    }

    fn opt_varying(&mut self, otherwise: TypeName) -> TypeName {
        if self.eat(Kw::VARYING) { TypeName::Varchar } else { otherwise }
    }

    /// `[CHARACTER SET x | ASCII | UNICODE | BYTE] [BINARY]` in either order.
    pub(super) fn charset_attributes(&mut self, data_type: &mut DataType) -> PResult<()> {
        loop {
            match self.kw() {
                Kw::CHARACTER | Kw::CHAR if self.peek_kw() == Kw::SET => {
                    self.bump();
                    self.bump();
                    data_type.charset = Some(self.charset_name()?);
                }
                Kw::CHARSET => {
                    self.bump();
                    data_type.charset = Some(self.charset_name()?);
                }
                Kw::ASCII => {
                    self.bump();
                    data_type.charset = Some(Ident::new("latin1"));
                }
                Kw::UNICODE => {
                    self.bump();
                    data_type.charset = Some(Ident::new("ucs2"));
                }
                Kw::BYTE => {
                    self.bump();
                    data_type.charset = Some(Ident::new("binary"));
                }
                Kw::BINARY => {
                    self.bump();
                    data_type.binary = true;
                }
                _ => return Ok(()),
            }
        }
    }

    /// A type of CAST, CONVERT and JSON_VALUE.
    pub(super) fn cast_type(&mut self) -> PResult<DataType> {
        let start = self.start();
        let kw = self.kw();
        let mut data_type = match kw {
            Kw::SIGNED | Kw::UNSIGNED => {
                self.bump();
                let _ = self.eat(Kw::INT) || self.eat(Kw::INTEGER);
                DataType::new(if kw == Kw::SIGNED { TypeName::Signed } else { TypeName::Unsigned })
            }
            Kw::INT | Kw::INTEGER => {
                self.bump();
                DataType::new(TypeName::Signed)
            }
            Kw::CHAR | Kw::CHARACTER | Kw::NCHAR | Kw::NATIONAL | Kw::VARCHAR => {
                self.cast_character(kw)?
            }
            Kw::DECIMAL | Kw::DEC | Kw::NUMERIC => self.real_type(kw)?,
            Kw::FLOAT | Kw::DOUBLE | Kw::REAL => self.cast_float(kw)?,
            Kw::BINARY | Kw::DATETIME | Kw::TIME | Kw::YEAR | Kw::TIMESTAMP | Kw::VECTOR => {
                self.sized_type(kw)?
            }
            Kw::DATE | Kw::JSON | Kw::UUID | Kw::INET4 | Kw::INET6 => self.type_body()?,
            _ => match geometry_of(kw) {
                Some(name) if name != TypeName::Geometry => {
                    self.bump();
                    DataType::new(name)
                }
                _ => return self.fail(),
            },
        };
        if self.at(Kw::COLLATE) && data_type.name == TypeName::Char {
            // MySQL applies COLLATE to the whole CAST; inside it is MariaDB's.
            self.bump();
            data_type.collation = Some(self.charset_name()?);
        }
        data_type.span = self.span_from(start);
        Ok(data_type)
    }

    /// `FLOAT [(bits)]`, `DOUBLE [PRECISION]`, `REAL`: nothing is rounded to decimals here.
    fn cast_float(&mut self, kw: Kw) -> PResult<DataType> {
        /// Bits of a DOUBLE's mantissa.
        const BITS_MAX: u64 = 53;
        self.bump();
        let single = kw == Kw::FLOAT || kw == Kw::REAL && self.options.real_as_float;
        let name = if single { TypeName::Float } else { TypeName::Double };
        let mut data_type = DataType::new(name);
        if kw == Kw::DOUBLE {
            self.eat(Kw::PRECISION);
        }
        if kw == Kw::FLOAT {
            data_type.length = self.opt_length()?;
        }
        if let Some(bits) = data_type.length.filter(|bits| *bits > BITS_MAX) {
            let message =
                format!("Too-big precision {bits} specified for 'CAST'. Maximum is {BITS_MAX}.");
            return self.fail_other(1426, message);
        }
        Ok(data_type)
    }

    fn cast_character(&mut self, kw: Kw) -> PResult<DataType> {
        self.bump();
        if kw == Kw::NATIONAL && !(self.eat(Kw::CHAR) || self.eat(Kw::CHARACTER)) {
            return self.fail();
        }
        let mut data_type = DataType::new(TypeName::Char);
        data_type.length = self.opt_length()?;
        if matches!(kw, Kw::NCHAR | Kw::NATIONAL) {
            data_type.charset = Some(Ident::new("utf8mb3"));
        } else {
            self.charset_attributes(&mut data_type)?;
        }
        Ok(data_type)
    }

    /// A type followed by COLLATE: parameters, variables, JSON_TABLE columns.
    pub(super) fn data_type_collate(&mut self) -> PResult<DataType> {
        let start = self.start();
        let mut data_type = self.data_type()?;
        if self.eat(Kw::COLLATE) {
            data_type.collation = Some(self.charset_name()?);
        }
        data_type.span = self.span_from(start);
        Ok(data_type)
    }
}

fn integer_of(kw: Kw) -> Option<TypeName> {
    Some(match kw {
        Kw::TINYINT | Kw::INT1 => TypeName::TinyInt,
        Kw::SMALLINT | Kw::INT2 => TypeName::SmallInt,
        Kw::MEDIUMINT | Kw::MIDDLEINT | Kw::INT3 => TypeName::MediumInt,
        Kw::INT | Kw::INTEGER | Kw::INT4 => TypeName::Int,
        Kw::BIGINT | Kw::INT8 => TypeName::BigInt,
        _ => return None,
    })
}

fn geometry_of(kw: Kw) -> Option<TypeName> {
    Some(match kw {
        Kw::GEOMETRY => TypeName::Geometry,
        Kw::POINT => TypeName::Point,
        Kw::LINESTRING => TypeName::LineString,
        Kw::POLYGON => TypeName::Polygon,
        Kw::MULTIPOINT => TypeName::MultiPoint,
        Kw::MULTILINESTRING => TypeName::MultiLineString,
        Kw::MULTIPOLYGON => TypeName::MultiPolygon,
        Kw::GEOMETRYCOLLECTION | Kw::GEOMCOLLECTION => TypeName::GeometryCollection,
        _ => return None,
    })
}
