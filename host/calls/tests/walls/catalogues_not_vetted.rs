//! Guests answered from what a server offers, or from more of it than their rules leave.

use std::sync::Arc;

use footbridge_calls::catalogues::Catalogues;
use footbridge_calls::catalogue::Vetted;
use footbridge_calls::catalogue::Visible;
use footbridge_core::catalogue::Entries;
use footbridge_core::catalogue::Offered;
use footbridge_core::gate::SessionRules;
use footbridge_core::names::ServerName;

fn shown_as_it_was_offered(offered: Arc<Offered>) {
    let _: Visible = offered; //~ E0308
}

fn shown_as_it_was_vetted(vetted: Arc<Vetted>) {
    let _: Visible = vetted; //~ E0308
}

fn offered_under_rules(offered: &Arc<Offered>, rules: &SessionRules) {
    let _ = offered.visible(rules); //~ E0599
}

fn entries_under_rules(entries: &Arc<Entries>, rules: &SessionRules) {
    let _: Visible = entries.seen_by(rules, "server"); //~ E0308
}

fn made_of_entries(entries: Arc<Entries>) {
    let _ = Visible(entries); //~ E0423
}

fn vetted_as_if_nothing_had_changed(server: ServerName, offered: &Arc<Offered>) {
    let _ = Vetted::against_pins(server, offered, []); //~ E0624
}

fn vetted_by_conversion(offered: Arc<Offered>) {
    let _ = Vetted::from(offered); //~ E0308
}

fn what_is_behind_the_rules(vetted: &Vetted) {
    let _ = &vetted.entries; //~ E0616
}

fn a_tool_behind_the_rules(vetted: &Vetted) {
    let _ = vetted.tool("tool"); //~ E0624
}

async fn vetted_for_a_guest(catalogues: &Catalogues, server: &ServerName) {
    let _ = catalogues.vetted(server, std::time::Duration::ZERO).await; //~ E0624
}
