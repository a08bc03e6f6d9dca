package storetest

// A Rule is something that every store must do.
type Rule struct {
	Name     string // of the subtest
	Sentence string
	check    func(k *check)
}

// Rules returns all rules, in the order in which Run holds a store to them.
func Rules() []Rule { return append([]Rule(nil), rules...) }

var rules = []Rule{
	{"vectors", "Every sequence of the test vectors gets the answers that were worked out for it by hand.", vectors},
	{"traces", "Whatever comes after whatever, every field of a verdict is that of algorithm.Program and of the store in memory.", traces},
	{"change-traces", "So it is with reservations, and limits of a name that change: every field of a verdict is that of algorithm.Account.", changeTraces},
	{"extremes", "Numbers near the ends of what 53 and 63 bits count are exact, or the limit is refused.", extremeTraces},
	{"S3-goroutines", "Of 200 requests that one process makes at once, exactly the capacity is admitted.", exactInProcess},
	{"S3-processes", "Of 200 requests that four processes make at once, exactly the capacity is admitted.", exactAcrossProcesses},
	{"S3-charged", "When several stores race for a key, what is charged is what was admitted: a denial is free, and no unit is lost.", exactlyCharged},
	{"linearizable", "Concurrent operations on a key, from several stores, take effect one after another, each between its call and its return.", linearizable},
	{"linearizable-own-clock", "So they do by the engine's clock, each at the time that a store.Stamper tells.", linearizableByOwnClock},
	{"linearizable-changes", "So they do where some clients have another limit of the name, and some make and settle reservations.", linearizableChanges},
	{"refund-races", "A key that is given back to nothing while another store takes from it keeps what was taken.", refundRaces},
	{"T1-rewind", "Time that steps back mints nothing.", rewind},
	{"A7-peek", "A request of cost 0 changes nothing, on a fresh key and on another, at whatever time it looks.", peekWritesNothing},
	{"S19-peek-contended", "A request of cost 0 changes nothing, also while others change the state.", peekUnderContention},
	{"S4-denial", "A request that is denied costs nothing: what remained before it remains after it.", denialIsFree},
	{"A8-above-capacity", "A cost above the capacity can never pass, and changes nothing, whatever the number.", aboveCapacity},
	{"S8-refund", "A refund gives back what was used and no more, and a window stays where it began.", refundIsBounded},
	{"A10-take-up-to", "TakeUpTo grants what there is room for, and is denied when there is none.", takeUpToTakesWhatThereIs},
	{"cancel", "A cancel gives back what was taken then, as far as the limit still holds it.", cancelGivesBackWhatWasTaken},
	{"S11-reset", "A reset forgets the key of just these bytes: nothing in it is a pattern.", resetIsLiteral},
	{"renew", "A renewal of a concurrent limit's units takes them for another lease, or takes anew if theirs is over; of others it is a look.", renewTakesAnew},
	{"S18-limit-change", "When the limit of a name changes, what was used stays used, and to and fro gives nothing.", limitsChange},
	{"S18-lease-change", "When the length of the leases of a name changes, each lease keeps its end, by which it is renewed and released.", leasesChange},
	{"S18-change-races", "While callers have one limit of a name or the other, no more is admitted in all than the larger capacity, nor less.", changeRaces},
	{"S17-change-outlives", "A record lives as long as its own limit has it, whatever another limit of the name denies.", changesOutlive},
	{"reserve", "A reservation is settled once, at less, at more or at nothing, or is given back when its life is over.", reservationsSettle},
	{"reserve-renew", "A second Reserve of an ID renews the reservation, and a late Commit without one charges its whole cost, as debt where there is no room.", reservationsRenewed},
	{"reserve-changes", "What was reserved under one limit of a name can be settled under another.", reservationsKeepThroughChanges},
	{"reserve-races", "Of many who settle one reservation at once one does it, and of many who ask for one of an ID all have one.", settledOnce},
	{"reserve-ends", "By the store's clock a reservation is given back when its life is over, and is not forgotten before.", reservationsEnd},
	{"unnamed-reservations", "A Reserve or Commit with a binding that keeps no accounts is store.ErrUnnamed, and changes nothing.", reservationsHaveNames},
	{"inspect", "What a store.Inspector shows explains the verdicts, and looking changes nothing.", inspectTells},
	{"S12-keys", "Any bytes are a key, and two keys never share a budget. One of a megabyte may be refused, uncharged.", oddKeys},
	{"S13-spellings", "Keys are compared byte by byte: the two spellings of é are two keys.", spellings},
	{"S12-names", "A name and a key, or a limit without a name and a key, never read together like another pair.", names},
	{"sharing", "Bindings of equal name share their states, as do those without a name of equal limits, in one store and in several on one engine.", sharing},
	{"time-debt", "With TimeDebt limits that differ share the time until the key is fresh, under one name.", timeDebt},
	{"key-memory", "A key's memory may be used for something else when the call is over.", keyMemory},
	{"client-time", "A store that decides by its engine's clock refuses a time of the caller's, and charges nothing.", clientTime},
	{"own-clock", "With store.OwnClock the store's clock decides: it tells the time of day and does not step back.", ownClock},
	{"S27-fresh-again", "A key whose time is over is full at a look: no request has to come first.", freshAgain},
	{"S17-last-debt", "A key is not forgotten before its last debt is paid.", debtOutlives},
	{"batches", "A store.Batcher decides a batch as if its requests came one by one, in their order.", batches},
	{"S5-joint", "Several limits on one request are charged all or none, reserved or taken, and each verdict is that of its limit.", jointAlone},
	{"S6-joint-same", "One limit twice on one request is charged once; a name whose limit has changed is charged under the new one.", jointOfOneState},
	{"joint-times", "With the times that a joint decision tells, what it took can be given back.", jointTimes},
	{"S6-joint-concurrent", "So they are under concurrency, in whatever order they come, from several stores, and nothing stays charged that did not pass.", jointUnderConcurrency},
	{"S20-cancelled", "An operation whose context was over before it began is an error that is the context's, uncharged; or it is decided as any other.", cancelledContext},
	{"refusals", "Bind refuses what the store can't keep with an *algorithm.LimitError that names the field and what is accepted.", refusals},
	{"restart", "While the engine restarts there are errors or right decisions; then the same store works again, and what a persistent engine held is still used.", survivesRestart},
}

// deploymentRules are the names of the rules that depend on how an engine runs: on its clock, its
// expiry, the distribution of its keys, several clients at once, and a restart.
var deploymentRules = []string{
	"vectors", "S3-goroutines", "S3-processes", "linearizable", "linearizable-changes", "S19-peek-contended", "S11-reset",
	"S17-change-outlives", "reserve-races", "reserve-ends", "S12-keys", "S13-spellings", "S12-names", "sharing", "time-debt",
	"client-time", "own-clock", "S27-fresh-again", "S17-last-debt", "batches", "S5-joint", "S6-joint-same", "joint-times",
	"S6-joint-concurrent", "S20-cancelled", "restart",
}
