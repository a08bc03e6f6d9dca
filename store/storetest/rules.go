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
	{"traces", "Whatever comes after whatever, also when time steps back, every field of a verdict is that of algorithm.Program and of the store in memory.", traces},
	{"extremes", "Numbers near the ends of what 53 and 63 bits count are exact, or the limit is refused.", extremeTraces},
	{"S3-goroutines", "Of 200 requests that one process makes at once, exactly the capacity is admitted.", exactInProcess},
	{"S3-processes", "Of 200 requests that four processes make at once, exactly the capacity is admitted.", exactAcrossProcesses},
}
