//! Fetches that HAProxy has and Weir has not yet: an expression with one of them is refused by its name. Must never hold a
//! name that a family has.

/// Their names.
#[rustfmt::skip]
pub const NAMES: &[&str] = &[
    "51d.all",
    "da-csv-fetch",
    "fcgi.docroot", "fcgi.index",
    "internal.htx.data", "internal.htx.free", "internal.htx.free_data", "internal.htx.has_eom",
    "internal.htx.nbblks", "internal.htx.size", "internal.htx.used", "internal.htx_blk.data",
    "internal.htx_blk.hdrname", "internal.htx_blk.hdrval", "internal.htx_blk.size", "internal.htx_blk.start_line",
    "internal.htx_blk.type",
    "res.cache_hit", "res.cache_name", "res.comp", "res.comp_algo",
    "spoe.engine-id",
    "ssl_bc_client_early_traffic_secret", "ssl_bc_client_handshake_traffic_secret", "ssl_bc_client_random",
    "ssl_bc_client_traffic_secret_0", "ssl_bc_early_exporter_secret", "ssl_bc_err",
    "ssl_bc_err_str", "ssl_bc_exporter_secret", 
    "ssl_bc_server_handshake_traffic_secret", "ssl_bc_server_random", "ssl_bc_server_traffic_secret_0",
    "ssl_bc_session_id", "ssl_bc_session_key", "ssl_bc_unique_id", 
    
    "ssl_fc_client_early_traffic_secret", "ssl_fc_client_handshake_traffic_secret", "ssl_fc_client_random",
    "ssl_fc_client_traffic_secret_0", "ssl_fc_early_exporter_secret",
    "ssl_fc_early_rcvd", "ssl_fc_err_str",
    "ssl_fc_exporter_secret",
    "ssl_fc_server_handshake_traffic_secret", "ssl_fc_server_random", "ssl_fc_server_traffic_secret_0",
    "ssl_fc_session_id", "ssl_fc_session_key", 
    "ssl_fc_unique_id", 
    "wurfl-get", "wurfl-get-all",
];

/// Why a name is refused that no later version will take as it is, or that waits for something larger.
pub fn reason(name: &str) -> Option<&'static str> {
    match name {
        _ if name.starts_with("internal.htx") => Some(
            "shows how HAProxy keeps messages in memory; Weir keeps them in another way and has nothing to show there",
        ),
        "fcgi.docroot" | "fcgi.index" => Some("is not supported yet by Weir: it belongs to FastCGI applications"),
        _ => None,
    }
}
