//! `LANGUAGE WASM`.

use errors::{Result, err};
use plugin_api::{
    CompiledProgram, ParameterMode, ProgramCall, ProgramLanguage, ProgramOutcome, ProgramText,
    TypedValue,
};
use types::{DataType, Value};

use crate::code::Code;
use crate::failure::Failure;
use crate::limits::Limits;
use crate::signature::Signature;
use crate::source::module_bytes;
use crate::values::call;

const LANGUAGE: &str = "WASM";

/// The language.
pub(crate) struct WasmLanguage {
    limits: Limits,
}

impl WasmLanguage {
    pub(crate) fn new(limits: Limits) -> WasmLanguage {
        WasmLanguage { limits }
    }

    fn program(&self, text: &ProgramText<'_>) -> Result<WasmProgram, Failure> {
        // With a library the text is only the name of a function in it.
        let (source, export) = match text.libraries.as_slice() {
            [] => (text.source, None),
            [library] if library.language == LANGUAGE => (library.source, Some(text.source.trim())),
            [_] => return Err(Failure::guest("its library is not in WebAssembly")),
            _ => return Err(Failure::guest("it uses more than one library")),
        };
        let code = Code::new(&module_bytes(source)?, &self.limits)?;
        let export = match export {
            Some(export) => export.to_owned(),
            None => export_of(&code, text.name)?,
        };
        let function = code.function(&export).ok_or_else(|| {
            Failure::Guest(format!("the module does not export a function {export}"))
        })?;
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for (slot, parameter) in text.parameters.iter().enumerate() {
            if parameter.mode != ParameterMode::Out {
                inputs.push(slot);
            }
            if parameter.mode != ParameterMode::In {
                outputs.push(slot);
            }
        }
        let type_of = |slot: &usize| text.parameters[*slot].ty.clone();
        let parameters: Vec<DataType> = inputs.iter().map(type_of).collect();
        let results: Vec<DataType> = match text.returns {
            Some(ty) => vec![ty.clone()],
            None => outputs.iter().map(type_of).collect(),
        };
        let takes_nulls = code.function("squall_takes_nulls").is_some();
        let signature = Signature::new(&function, takes_nulls, &parameters, &results)?;
        let (name, is_function) = (text.name.to_owned(), text.returns.is_some());
        Ok(WasmProgram { name, code, export, signature, inputs, outputs, is_function })
    }
}

/// The function that a routine without a library runs: the one with its name, else the only one.
fn export_of(code: &Code, name: &str) -> Result<String, Failure> {
    let functions = code.functions();
    let by_name = functions.iter().find(|own| own.eq_ignore_ascii_case(name));
    match (by_name, functions.as_slice()) {
        (Some(own), _) | (None, [own]) => Ok(own.clone()),
        (None, []) => Err(Failure::guest("the module exports no function")),
        (None, [_, ..]) => {
            Err(Failure::Guest(format!("the module exports several functions and none is {name}")))
        }
    }
}

impl ProgramLanguage for WasmLanguage {
    fn name(&self) -> &str {
        LANGUAGE
    }

    fn compile(&self, text: &ProgramText<'_>) -> Result<Box<dyn CompiledProgram>> {
        let program = self.program(text);
        Ok(Box::new(program.map_err(|failure| failure.of_definition(text.name))?))
    }

    fn check_library(&self, name: &str, source: &str) -> Result<()> {
        let code = module_bytes(source).and_then(|bytes| Code::new(&bytes, &self.limits));
        code.map(drop).map_err(|failure| failure.of_definition(name))
    }
}

/// A routine.
struct WasmProgram {
    name: String,
    code: Code,
    export: String,
    signature: Signature,
    /// The parameters that the function gets.
    inputs: Vec<usize>,
    /// The parameters that it returns; of a procedure.
    outputs: Vec<usize>,
    is_function: bool,
}

impl CompiledProgram for WasmProgram {
    fn invoke(&self, mut program_call: ProgramCall<'_>) -> Result<ProgramOutcome> {
        let arguments: Vec<Value> =
            self.inputs.iter().map(|slot| program_call.arguments[*slot].clone()).collect();
        let context = &mut program_call.context;
        let results = call(&self.code, &self.export, &self.signature, &arguments, context);
        let results = results.map_err(|failure| failure.of_call(&self.name))?;
        let mut typed = results.into_iter().map(|result| {
            result.unwrap_or_else(|| TypedValue { value: Value::Null, ty: DataType::null() })
        });
        if self.is_function {
            let returned = typed.next().ok_or_else(|| err!(SP_NORETURNEND, self.name))?;
            return Ok(ProgramOutcome { returned: Some(returned), out: Vec::new() });
        }
        let out = self.outputs.iter().copied().zip(typed).collect();
        Ok(ProgramOutcome { returned: None, out })
    }
}
