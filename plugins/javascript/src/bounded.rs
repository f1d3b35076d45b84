//! Methods of arrays that would loop for hours without asking whether they may: QuickJS walks over absent elements one by one, and an
//! interrupt is not noticed there.

use rquickjs::function::Function;
use rquickjs::{Ctx, Result, Value};

/// Puts a check in front of the methods that do not ask, which refuses objects with more elements than the memory of a script holds (they are gone through
/// in less than a second), and those whose length could change after the check. A proxy runs code of the script for each element, and that is interrupted.
/// What `concat` appends is one element, unless it is an array or says otherwise.
///
/// In JavaScript, so that the garbage collector sees what the checks refer to: a closure of ours that kept a value would keep its global object alive for ever. It
/// uses what it has taken before any script ran, so that no script can change what it does.
const CHECKS: &str = "(function(isProxy){'use strict';\
const {apply}=Reflect,{getOwnPropertyDescriptor:ownProperty,defineProperty}=Object,{isArray}=Array;\
const spreadable=Symbol.isConcatSpreadable,hasOwn=Object.prototype.hasOwnProperty,prototype=Array.prototype;\
const Range=RangeError,Type=TypeError;\
const isObject=v=>v!==null&&(typeof v==='object'||typeof v==='function');\
const check=v=>{if(!isObject(v)||isProxy(v))return;const own=ownProperty(v,'length');\
if(own===undefined||!apply(hasOwn,own,['value'])||typeof own.value!=='number')throw new Type('the object has no length of its own');\
if(!(own.value<=20000000))throw new Range('the array has too many elements')};\
const checkPart=v=>{if(isObject(v)&&(isArray(v)||v[spreadable]!==undefined))check(v)};\
const names=['sort','reverse','slice','concat','fill','join','toLocaleString'];\
for(let n=0;n<names.length;n++){const name=names[n],original=prototype[name],joins=name==='concat';\
const value={[name](...args){check(this);if(joins)for(let i=0;i<args.length;i++)checkPart(args[i]);\
return apply(original,this,args)}}[name];\
defineProperty(prototype,name,{value,writable:true,configurable:true,enumerable:false})}})";

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

/// Makes the methods ask.
pub(crate) fn install(ctx: &Ctx<'_>) -> Result<()> {
    let checks: Function<'_> = ctx.eval(CHECKS)?;
    let is_proxy = Function::new(ctx.clone(), |value: Value<'_>| value.is_proxy())?;
    let _: Value<'_> = checks.call((is_proxy,))?;
    ctx.eval(FLAT)
}
