//! Every plugin slot except storage: functions, aggregates, languages of stored programs, authentication, listeners, HTTP routes, information tables,
//! statement rewriters, time zones, background jobs, variables, and the registry of the known and the loaded plugins.
//!
//! Invariant: a plugin sees the server only through the types here; none of them leads to a session, a plan or the catalog.

mod answer;
mod authentication;
mod authorization;
mod binary_log;
mod change;
mod cluster;
mod cost;
mod forward;
mod function;
mod http;
mod identity;
mod information;
mod job;
mod json_text;
mod keyring;
pub mod kit;
mod language;
mod listener;
mod log_sink;
mod observer;
mod optimizer_trace;
mod plugin;
mod profile;
mod registry;
mod replication;
mod result;
mod rewrite;
mod secrets;
mod session;
mod shared_state;
mod stage;
mod statements;
mod stream_sink;
#[doc(hidden)]
pub mod test_support;
mod text_runner;
mod time_zone;
pub mod variable;

pub use answer::Answer;
pub use authentication::{
    AccountSecret, AuthChannel, AuthContext, AuthStep, Authenticator, Exchange, NewPassword,
    PasswordCheck,
};
pub use authorization::{Authorizer, Object, Subject};
pub use crypt::Secret;
pub use keyring::{Keyring, keep_master_key};

pub use binary_log::{
    BinaryLog, BinaryLogStatus, DumpRequest, DumpSink, LogWishes, LoggedColumn, LoggedTable,
    PurgeLimit, Recorder, RegisteredReplica, RowImage, StatementContext, Tracking,
};
pub use change::{ChangeSink, CommittedTransaction, RowChange, RowChangeKind, RowColumn, RowEvent};
pub use cluster::{ClusterControl, ClusterStep};
pub use cost::{CostEvents, SessionCounts, StatementCost, StatementCounts, StatementStep};
pub use forward::ForwardingSink;
pub use function::{
    Accumulator, AggregateBinding, AggregateFunction, ArgInfo, ArgumentNames, Arguments, Arity,
    BindContext, Binding, BoundAggregate, BoundFunction, Coercion, CollationRule, FunctionContext,
    Geometries, HistorySettings, Kernel, MadeAggregate, MadeBinding, NullRule, Reading, Repeats,
    ScalarFunction, SequenceCall, SequenceName, SessionServices, StatementKernel, TableFunction,
    TruthArguments,
};
pub use http::{
    ConsolePage, HttpAccess, HttpReply, HttpRequest, HttpRoute, HttpRoutes, HttpServer,
};
pub use identity::{Loading, PluginInfo};
pub use information::{
    AccountInformation, AccountView, ColumnPrivilegesView, ColumnView, ConditionView,
    ConstraintKind, ConstraintView, CopyProgress, DualityLinkView, DualityObjectView,
    DynamicPrivilegeView, EarlierPasswordView, EngineInformation, EngineStatView, EngineView,
    EventView, FileOperations, FileUseView, ForeignServerView, FunctionView, GeneratedView,
    IndexPartView, IndexView, InfoColumn, InfoFilter, InformationContext, InformationTable,
    IntervalView, IoBucket, MetadataLockRow, ParameterView, PartitionView, PlanCacheView,
    PluginItemView, PluginView, ProcessView, ProgramInformation, ProxyView, ReferencedView,
    ResourceGroupView, RoleGrantView, RoleView, RoutinePrivilegesView, RoutineView,
    SchemaInformation, SchemaPrivilegesView, SchemaView, ServerInformation, SessionTable,
    StatusInformation, StatusScope, SystemProcedure, SystemView, TableDefinition, TableDetail,
    TableEditor, TablePrivilegesView, TableView, TableWaitsRow, TablespaceView, TimedCounts,
    TriggerView, UserLockView, VariableChange, VariableView, ViewUsage, table_definitions,
};
pub use job::{BackgroundJob, RunningJob};
pub use language::{
    CompiledProgram, ParameterMode, ProgramCall, ProgramLanguage, ProgramLibrary, ProgramOutcome,
    ProgramParameter, ProgramText, TypedValue,
};
pub use listener::{
    Listener, ListenerContext, Rebinding, RunningListener, cannot_listen, parse_bind_addresses,
};
pub use log_sink::{LogSink, Severity};
pub use observer::{
    ConnectionEvent, EventSet, LoginAttempt, LoginFailure, Observer, SchemaChange,
    SchemaChangeKind, SessionFacts, StatementEnd, StatementEvent, TableRows, first_word,
};
pub use optimizer_trace::OptimizerTraceView;
pub use plugin::{Module, Plugin, PluginLoader};
pub use profile::{ConnectionProfile, ProfileFrame, ProfilePrinter, ProfileRows};
pub use registry::{Registrar, Registry};
pub use replication::{ReplicationControl, ReplicationSession};
pub use result::{
    ColumnMeta, Computed, LocalFile, Next, OkInfo, ResultSink, RowSource, SessionState,
    StateChange, ValueRow,
};
pub use rewrite::{RewriteContext, StatementRewriter};
pub use secrets::without_secrets;
pub use session::{
    AuthRequest, CommandOutcome, ConnectInfo, ConnectionKind, CountedCommand, ExecuteRequest,
    PeerCertificate, PreparedInfo, QueryAttribute, RepeatedTransaction, SessionFactory,
    SessionHandle, SocketView, Traffic,
};
pub use shared_state::SharedState;
pub use stage::Stage;
pub use statements::{StatementResult, Statements};
pub use stream_sink::{SinkBatch, SinkConnection, SinkEvent, SinkFailure, SinkOptions, StreamSink};
pub use text_runner::{StopsWith, TextPlace, TextRequest, TextResults, TextRunner, TextSession};
pub use time_zone::TimeZones;
pub use types::{
    AggregateRole, DatetimeText, DocumentUse, FunctionRole, FunctionTraits, Growth, OperatorCall,
    PartitionQuestion, PartitionUse, RunsStatements, Volatility,
};
pub use variable::{GlobalValue, PluginVariable, StatusVariable, VariableCheck};
