//! Converters that HAProxy has and Weir has not yet: an expression with one of them is refused by its name. Must never hold
//! a name that a family has.

/// Their names.
#[rustfmt::skip]
pub const NAMES: &[&str] = &[
    "51d.single", "da-csv-conv", "in_table", "jwt_decrypt_cert",
    "table_bytes_in_rate", "table_bytes_out_rate", "table_clr_gpc", "table_clr_gpc0", "table_clr_gpc1",
    "table_conn_cnt", "table_conn_cur", "table_conn_rate", "table_expire", "table_glitch_cnt", "table_glitch_rate",
    "table_gpc", "table_gpc0", "table_gpc0_rate", "table_gpc1", "table_gpc1_rate", "table_gpc_rate", "table_gpt",
    "table_gpt0", "table_http_err_cnt", "table_http_err_rate", "table_http_fail_cnt", "table_http_fail_rate",
    "table_http_req_cnt", "table_http_req_rate", "table_idle", "table_inc_gpc", "table_inc_gpc0", "table_inc_gpc1",
    "table_kbytes_in", "table_kbytes_out", "table_server_id", "table_sess_cnt", "table_sess_rate", "table_trackers",
    "x509_v_err_str",
];
