//! Every name of HAProxy's Lua manual exists in a state. Must never judge what it does.

use super::*;

/// Names by class, in the manual's order.
const NAMES: &[(&str, &str)] = &[
    (
        "core",
        "silent emerg alert crit err warning notice info debug proxies backends frontends thread log Debug Info Warning Alert \
         get_patref add_acl del_acl del_map get_info get_var now http_date imf_date rfc850_date asctime_date msleep \
         register_action register_converters register_fetches register_filter register_service register_init register_task \
         register_cli set_nice set_map sleep tcp httpclient concat queue done wait yield parse_addr match_addr tokenize \
         event_sub use_native_mailers_config",
    ),
    (
        "Proxy",
        "name get_name uuid get_uuid servers stktable listeners pause resume stop shut_bcksess get_cap get_mode get_srv_act \
         get_srv_bck get_stats get_mailers",
    ),
    (
        "Server",
        "name get_name puid get_puid get_rid is_draining is_backup is_dynamic get_cur_sess get_pend_conn set_maxconn \
         get_maxconn set_weight get_weight set_addr get_addr get_stats get_proxy shut_sess set_drain set_maint set_ready \
         check_enable check_disable check_force_up check_force_nolb check_force_down agent_enable agent_disable \
         agent_force_up agent_force_down tracking get_trackers event_sub",
    ),
    ("Listener", "get_stats"),
    ("EventSub", "unsub"),
    ("Queue", "alarm size push pop pop_wait"),
    ("Concat", "add dump"),
    (
        "Channel",
        "append data forward input insert is_full is_resp line may_recv output prepend remove send set dup get getline \
         get_in_len get_out_len",
    ),
    (
        "HTTP",
        "req_get_headers res_get_headers req_add_header res_add_header req_del_header res_del_header req_set_header \
         res_set_header req_rep_header res_rep_header req_set_method req_set_path req_set_query req_set_uri res_set_status",
    ),
    ("HTTPClient", "get head put post delete"),
    (
        "TXN",
        "c sc f sf req res log deflog Debug Info Warning Alert get_priv set_priv set_var unset_var get_var reply done \
         set_fc_tos set_fc_mark set_loglevel set_mark set_tos set_priority_class set_priority_offset",
    ),
    ("Reply", "set_status add_header del_header set_body"),
    ("Socket", "close connect connect_ssl getpeername getsockname receive send setoption settimeout"),
    ("Regex", "exec match"),
    ("Map", "lookup slookup"),
    ("Patref", "get_name is_map purge prepare commit giveup add add_bulk del set event_sub"),
    (
        "AppletHTTP",
        "set_status add_header start_response getline receive send get_priv set_priv set_var unset_var get_var",
    ),
    ("AppletTCP", "getline receive try_receive send get_priv set_priv set_var unset_var get_var"),
    ("StickTable", "info lookup dump"),
    ("act", "CONTINUE STOP YIELD ERROR DONE DENY ABORT INVALID wake_time"),
    ("filter", "CONTINUE WAIT ERROR FLT_CFG_FL_HTX register_data_filter unregister_data_filter wake_time"),
    (
        "HTTPMessage",
        "add_header append body eom del_header get_headers get_stline forward input insert is_full is_resp may_recv output \
         prepend remove rep_header rep_value send set set_body_len set_eom set_header set_method set_path set_query \
         set_status set_uri unset_eom",
    ),
    ("CertCache", "set"),
    ("ACME", "challenge_ready"),
];

/// Global tables, with the members of the class of the same name.
const GLOBAL: &[(&str, &str)] = &[
    ("Regex", "new exec match"),
    ("Map", "new lookup slookup _int _ip _str _beg _sub _dir _dom _end _reg int ip str beg sub dir dom end reg"),
];

#[test]
fn every_name_of_the_manual_is_there() {
    let machine = tests::machine("");
    task::open(&machine).expect("a state");
    machine.with(|lua| maps::open(lua, &lua.named_registry_value("native")?)).expect("a state");
    machine.with(classes::open).expect("a state");
    machine.with(|lua| {
        let native: mlua::Table = lua.named_registry_value("native").expect("a table");
        let classes: mlua::Table = native.get("classes").expect("a table");
        let look = |table: &mlua::Table, class: &str, names: &str| {
            for name in names.split_ascii_whitespace() {
                assert!(!table.get::<Value>(name).expect("a table").is_nil(), "{class}.{name}");
            }
        };
        for (class, names) in NAMES {
            let table = match classes.get::<Value>(*class).expect("a table") {
                Value::Table(table) => table,
                _ => lua.globals().get(*class).expect("a class"),
            };
            look(&table, class, names);
        }
        for (name, names) in GLOBAL {
            look(&lua.globals().get(*name).expect("a table"), name, names);
        }
    });
}
