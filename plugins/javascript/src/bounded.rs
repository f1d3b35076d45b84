//! Methods of arrays that would loop for hours without asking whether they may: QuickJS walks over absent elements one by one, and an
//! interrupt is not noticed there.

use rquickjs::function::{Args, Function, Rest, This};
use rquickjs::{Ctx, Exception, Object, Result, Symbol, Value};

/// The methods that do not ask.
const METHODS: [&str; 7] = ["sort", "reverse", "slice", "concat", "fill", "join", "toLocaleString"];
/// Elements that such a method goes through: more than the memory of a script holds, and done in less than a second.
const LENGTH_MAX: f64 = 20_000_000.0;

/// `flat` and `flatMap` in JavaScript, which is interrupted: they go through arrays inside arrays, which no check in front of them sees.
const FLAT: &str = "{const isArray=Array.isArray,at=Object.defineProperty,call=Function.prototype.call.bind(Function.prototype.call);\
const put=(to,value)=>at(to,to.length,{value,writable:true,enumerable:true,configurable:true});\
const into=(to,from,depth)=>{for(let i=0,n=from.length;i<n;i++)if(i in from){const v=from[i];\
if(depth>0&&isArray(v))into(to,v,depth-1);else put(to,v)}return to};\
const define=(name,value)=>at(Array.prototype,name,{value,writable:true,configurable:true});\
define('flat',{flat(depth=1){return into([],Object(this),+depth||0)}}.flat);\
define('flatMap',{flatMap(f,self){const to=[],from=Object(this);\
for(let i=0,n=from.length;i<n;i++)if(i in from){const v=call(f,self,from[i],i,from);\
if(isArray(v))into(to,v,0);else put(to,v)}return to}}.flatMap);}";

/// Puts a check in front of the methods.
pub(crate) fn install(ctx: &Ctx<'_>) -> Result<()> {
    let array: Object<'_> = ctx.globals().get("Array")?;
    let prototype: Object<'_> = array.get("prototype")?;
    let object: Object<'_> = ctx.globals().get("Object")?;
    let descriptor: Function<'_> = object.get("getOwnPropertyDescriptor")?;
    let symbol: Object<'_> = ctx.globals().get("Symbol")?;
    let spreadable: Symbol<'_> = symbol.get("isConcatSpreadable")?;
    for name in METHODS {
        replace(ctx, &prototype, &descriptor, &spreadable, name)?;
    }
    ctx.eval(FLAT)
}

fn replace<'js>(
    ctx: &Ctx<'js>,
    prototype: &Object<'js>,
    descriptor: &Function<'js>,
    spreadable: &Symbol<'js>,
    name: &'static str,
) -> Result<()> {
    let original: Function<'js> = prototype.get(name)?;
    let (descriptor, spreadable) = (descriptor.clone(), spreadable.clone());
    let method = {
        let original = original.clone();
        move |ctx: Ctx<'js>, this: This<Value<'js>>, args: Rest<Value<'js>>| -> Result<Value<'js>> {
            check(&ctx, &descriptor, &this.0)?;
            if name == "concat" {
                args.0
                    .iter()
                    .try_for_each(|arg| check_part(&ctx, &descriptor, &spreadable, arg))?;
            }
            let mut given = Args::new(ctx, args.0.len());
            given.this(this.0)?;
            given.push_args(args.0)?;
            original.call_arg(given)
        }
    };
    let method = Function::new(ctx.clone(), method)?.with_name(name)?;
    prototype.prop(name, rquickjs::object::Property::from(method).writable().configurable())
}

/// What `concat` appends: other objects than arrays as they are, unless they say otherwise.
fn check_part<'js>(
    ctx: &Ctx<'js>,
    descriptor: &Function<'js>,
    spreadable: &Symbol<'js>,
    part: &Value<'js>,
) -> Result<()> {
    let Some(object) = part.as_object() else { return Ok(()) };
    let spreads: Value<'_> = object.get(spreadable.clone())?;
    if part.is_array() || !spreads.is_undefined() { check(ctx, descriptor, part) } else { Ok(()) }
}

/// Refuses objects with too many elements, and those whose length could change after the check.
fn check<'js>(ctx: &Ctx<'js>, descriptor: &Function<'js>, this: &Value<'js>) -> Result<()> {
    // A proxy runs code of the script for each element, and that is interrupted.
    let Some(object) = this.as_object().filter(|_| !this.is_proxy()) else { return Ok(()) };
    let own: Value<'_> = descriptor.call((object.clone(), "length"))?;
    let length = match own.as_object() {
        Some(own) => own.get::<_, Value<'_>>("value")?.as_number(),
        None => None,
    };
    match length {
        Some(length) if length <= LENGTH_MAX => Ok(()),
        Some(_) => Err(Exception::throw_range(ctx, "the array has too many elements")),
        None => Err(Exception::throw_type(ctx, "the object has no length of its own")),
    }
}
