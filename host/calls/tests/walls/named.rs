//! What only the stages make and take among themselves, named: what another crate cannot name, it can neither make nor
//! keep nor hand to another stage.

use footbridge_calls::admit::Admitted; //~ E0603
use footbridge_calls::admit::Receipt; //~ E0603
use footbridge_calls::approval::Clear; //~ E0603
use footbridge_calls::approval::Cleared; //~ E0603
use footbridge_calls::approval::NotCleared; //~ E0603
use footbridge_calls::approval::Patience; //~ E0603
use footbridge_calls::approval::Question; //~ E0603
use footbridge_calls::approval::waiting::Waiting; //~ E0603
use footbridge_calls::decide::Verdict; //~ E0603
use footbridge_calls::decide::decide; //~ E0603
use footbridge_calls::resolve::Found; //~ E0603
use footbridge_calls::resolve::ResolvedCall; //~ E0603
use footbridge_calls::resolve::Unresolved; //~ E0603
use footbridge_calls::resolve::checked; //~ E0603
use footbridge_calls::session::Shown; //~ E0603
