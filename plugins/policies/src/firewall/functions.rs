//! The firewall's functions, and the procedure around one of them.

use std::sync::Arc;

use errors::{Error, ErrorCode, Result};
use plugin_api::kit::{self, scalar};
use plugin_api::{
    Arity, BoundFunction, Coercion, FunctionContext, ScalarFunction, SystemProcedure,
};
use types::{CollationId, Value};

use crate::firewall::profiles::{Mode, RULE_BYTES_MAX};
use crate::firewall::{ADMIN, Firewall, STATE, USER, form, profile_name, unreadable};

/// Characters of `OK`, with room for what MySQL answers there.
const ANSWER_LENGTH: u64 = 160;
const RESET: &str = "RESET";

pub(crate) fn all() -> [ScalarFunction; 3] {
    [
        scalar(
            "SET_FIREWALL_MODE",
            Arity::exactly(2),
            "SET_FIREWALL_MODE(account, mode)\nSets the mode of an account's firewall profile: OFF, RECORDING, PROTECTING, DETECTING; RESET removes its rules.",
            |_, _| Ok(answering(vec![Coercion::Text, Coercion::Text], set_mode)),
        )
        .volatile(),
        scalar(
            "MYSQL_FIREWALL_FLUSH_STATUS",
            Arity::exactly(0),
            "MYSQL_FIREWALL_FLUSH_STATUS()\nSets the firewall's counters of statements to 0.",
            |_, _| Ok(answering(Vec::new(), flush_status)),
        )
        .volatile(),
        scalar(
            "NORMALIZE_STATEMENT",
            Arity::exactly(1),
            "NORMALIZE_STATEMENT(text)\nThe form of a statement, as the firewall's rules have it.",
            |_, _| {
                let ty = kit::text_type(RULE_BYTES_MAX as u64, CollationId::UTF8MB4_0900_AI_CI);
                Ok(BoundFunction::new(ty, vec![Coercion::Text], |ctx, args| {
                    let text = kit::text(&args[0]);
                    Ok(Value::text(&form::of_text(&*ctx.session, text.as_bytes())))
                }))
            },
        )
        .stable()
        .one_thread(),
    ]
}

/// `CALL mysql.sp_set_firewall_mode(account, mode)`.
pub(crate) fn set_mode_procedure() -> SystemProcedure {
    SystemProcedure {
        schema: "mysql",
        name: "sp_set_firewall_mode",
        text: "CREATE PROCEDURE sp_set_firewall_mode (IN arg_userhost VARCHAR(288), IN arg_mode VARCHAR(16))
    COMMENT 'Sets the mode of an account\\'s firewall profile'
    MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DO set_firewall_mode(arg_userhost, arg_mode);
END",
    }
}

type Run = fn(&mut FunctionContext<'_>, &[Value]) -> Result<()>;

/// A function that does something and answers OK.
fn answering(coercions: Vec<Coercion>, run: Run) -> BoundFunction {
    let ty = kit::text_type(ANSWER_LENGTH, CollationId::UTF8MB4_0900_AI_CI);
    BoundFunction::new(ty, coercions, move |ctx, args| {
        run(ctx, args)?;
        Ok(Value::text("OK"))
    })
}

fn firewall(ctx: &FunctionContext<'_>) -> Result<Arc<Firewall>> {
    let state = ctx.session.shared_state(STATE);
    let known = state.and_then(|state| state.downcast::<Firewall>().ok());
    known.ok_or_else(|| Error::with(ErrorCode::PLUGIN_IS_NOT_LOADED, &[&"mysql_firewall"]))
}

/// # Errors
/// 1227 for who may not set this profile; 1210 for what is no account or mode.
fn set_mode(ctx: &mut FunctionContext<'_>, args: &[Value]) -> Result<()> {
    let session = &*ctx.session;
    let wrong = || Error::with(ErrorCode::WRONG_ARGUMENTS, &[&"set_firewall_mode"]);
    let account = profile_name(&kit::text(&args[0])).ok_or_else(wrong)?;
    let is_own = Some(&account) == profile_name(&session.current_user()).as_ref();
    let may = session.has_privilege(ADMIN) || is_own && session.has_privilege(USER);
    if !may {
        return Err(Error::with(ErrorCode::SPECIFIC_ACCESS_DENIED_ERROR, &[&ADMIN]));
    }
    let name = kit::text(&args[1]);
    let mode = match name.eq_ignore_ascii_case(RESET) {
        true => None,
        false => Some(Mode::called(&name).ok_or_else(wrong)?),
    };
    firewall(ctx)?.with_profiles(session, |profiles| {
        let done = match mode {
            None => profiles.reset(&account),
            Some(mode) => profiles.set_mode(&account, mode),
        };
        done.map_err(unreadable)
    })
}

/// # Errors
/// 1227 without the privilege.
fn flush_status(ctx: &mut FunctionContext<'_>, _: &[Value]) -> Result<()> {
    if !ctx.session.has_privilege(ADMIN) {
        return Err(Error::with(ErrorCode::SPECIFIC_ACCESS_DENIED_ERROR, &[&ADMIN]));
    }
    firewall(ctx)?.forget_counts();
    Ok(())
}
