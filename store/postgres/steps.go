package postgres

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/weirlimit/weir/algorithm"
)

// steps are an algorithm's transition in SQL, for the statement of a Take. Their columns are those of a
// row with the parameters: now (µs), and those of the algorithm. WORDS is the state found.
type steps struct {
	given string // columns of the parameters from $4 on
	also  string // columns that are worked out from those
	able  string // whether the step can be taken at this time, whatever the state; "" where it always can
	// sound is whether each word is in the range that the algorithm keeps it in. It is NULL where there is no such word, or it is NULL.
	sound string
	words int    // of a state
	fresh string // the state after a Take from a fresh one, which always has room
	room  string // whether the state has room for the cost
	next  string // the state after a Take for which there is room
	life  string // how long the new state, new[…], matters: µs from now
	// ahead is whether the state is so far ahead that it must be healed before anything is taken from it; "" where
	// such a state has no room anyway.
	ahead string
}

// farthest is how far from 1970 the times of states are, in µs. Sums and products of times that are no farther fit into 64 bits.
const farthest = (algorithm.MaxTime + 1<<61) / 1000

// inTime and inWindows are the ranges of times and of the indexes of windows.
var (
	inTime    = fmt.Sprintf(`WORDS[1] BETWEEN -%d AND %[1]d`, farthest)
	inWindows = fmt.Sprintf(`WORDS[1] BETWEEN -(%d / width) AND %[1]d / width`, farthest)
)

// plain is true of words that are a list: empty, or of one dimension, counted from 1, without NULL. Only
// plain words are read into Go, which could not distinguish the others.
const plain = `CASE WHEN WORDS = '{}' THEN true WHEN array_ndims(WORDS) > 1 OR array_lower(WORDS, 1) <> 1 THEN false ELSE array_position(WORDS, NULL) IS NULL END`

// on puts words into an expression, in which they are WORDS.
func on(words, expression string) string { return strings.ReplaceAll(expression, "WORDS", words) }

// The theoretical arrival time in whole ticks.
var linearTicks = steps{
	given: `$4::bigint AS charge, $5::bigint AS most`,
	words: 1,
	sound: inTime,
	fresh: `ARRAY[now + charge]`,
	room:  `WORDS[1] < now OR WORDS[1] - now <= most`,
	next:  `ARRAY[greatest(WORDS[1], now) + charge]`,
	life:  `new[1] - now`,
}

// The same and a remainder in 1/unit ticks. Remainders are compared before they are added: they have up to 63 bits.
var linearParts = steps{
	given: `$4::bigint AS charge, $5::bigint AS charge_part, $6::bigint AS most, $7::bigint AS most_part, $8::bigint AS unit`,
	words: 2,
	sound: inTime + ` AND WORDS[2] >= 0 AND WORDS[2] < unit`,
	fresh: `ARRAY[now + charge, charge_part]`,
	room:  `WORDS[1] < now OR (WORDS[1] - now, WORDS[2]) <= (most, most_part)`,
	next: `CASE WHEN WORDS[1] < now THEN ARRAY[now + charge, charge_part]
		WHEN WORDS[2] < unit - charge_part THEN ARRAY[WORDS[1] + charge, WORDS[2] + charge_part]
		ELSE ARRAY[WORDS[1] + charge + 1, WORDS[2] - (unit - charge_part)] END`,
	life: `new[1] - now + (new[2] > 0)::int`,
}

// index is the current window's, rounded down also before 1970.
const index = `now / width - (now % width < 0)::int AS index`

// The window's index, the units used in it.
var fixedWindow = steps{
	given: `$4::bigint AS cost, $5::bigint AS most, $6::bigint AS width`,
	also:  index,
	words: 2,
	sound: inWindows + ` AND WORDS[2] BETWEEN 0 AND most`,
	fresh: `ARRAY[index, cost]`,
	room:  `WORDS[1] < index OR WORDS[2] <= most - cost`,
	next:  `CASE WHEN WORDS[1] < index THEN ARRAY[index, cost] ELSE ARRAY[WORDS[1], WORDS[2] + cost] END`,
	life:  `(new[1] + 1) * width - now`,
	ahead: `WORDS[1] > index + 1`,
}

// The window's start, the units used in it.
var quotaReset = steps{
	given: `$4::bigint AS cost, $5::bigint AS most, $6::bigint AS width`,
	words: 2,
	sound: inTime + ` AND WORDS[2] BETWEEN 0 AND most`,
	fresh: `ARRAY[now, cost]`,
	room:  `WORDS[1] + width <= now OR WORDS[2] <= most - cost`,
	next:  `CASE WHEN WORDS[1] + width <= now THEN ARRAY[now, cost] ELSE ARRAY[WORDS[1], WORDS[2] + cost] END`,
	life:  `new[1] + width - now`,
	ahead: `WORDS[1] > now + width`,
}

// refills is how many refills there were since the last that was counted. The bucket is full when there were more than refillsLeft.
const (
	refills     = `greatest(0, (now - WORDS[1]) / width)`
	refillsLeft = `(WORDS[2] - 1) / amount`
)

// The last refill that was counted, the tokens missing after it. CASE keeps the product from being worked out where it
// could overflow.
var refillBucket = steps{
	given: `$4::bigint AS cost, $5::bigint AS amount, $6::bigint AS width, $7::bigint AS burst`,
	words: 2,
	sound: inTime + ` AND WORDS[2] BETWEEN 0 AND burst`,
	fresh: `ARRAY[now, cost]`,
	room:  `CASE WHEN ` + refills + ` > ` + refillsLeft + ` THEN true ELSE WORDS[2] - ` + refills + ` * amount <= burst - cost END`,
	next: `CASE WHEN ` + refills + ` > ` + refillsLeft + ` THEN ARRAY[now, cost]
		ELSE ARRAY[WORDS[1] + ` + refills + ` * width, WORDS[2] - ` + refills + ` * amount + cost] END`,
	life:  `new[1] - now + ((new[2] - 1) / amount + 1) * width`,
	ahead: `WORDS[1] > now + width`,
}

// The current window's index, the previous window's units, the current one's. The products have more than 64 bits.
var slidingWindow = steps{
	given: `$4::bigint AS cost, $5::bigint AS most, $6::bigint AS width`,
	also:  index,
	words: 3,
	sound: inWindows + ` AND WORDS[2] BETWEEN 0 AND most AND WORDS[3] BETWEEN 0 AND most`,
	fresh: `ARRAY[index, 0, cost]`,
	room: `CASE WHEN WORDS[1] >= index THEN WORDS[2]::numeric * (width - greatest(0, now - WORDS[1] * width)) <= (most - cost - WORDS[3])::numeric * width
		WHEN WORDS[1] = index - 1 THEN WORDS[3]::numeric * (width - (now - index * width)) <= (most - cost)::numeric * width
		ELSE true END`,
	next: `CASE WHEN WORDS[1] >= index THEN ARRAY[WORDS[1], WORDS[2], WORDS[3] + cost]
		WHEN WORDS[1] = index - 1 THEN ARRAY[index, WORDS[3], cost]
		ELSE ARRAY[index, 0, cost] END`,
	life:  `(new[1] + 2) * width - now`,
	ahead: `WORDS[1] > index + 1`,
}

// The parameters have the edges of three windows: the current one by the clock of this process, the one
// before and the one after. Takes at other times, and states of a later window, are left to the loop.
//
// The current window's first instant, the units used in it.
var calendar = steps{
	given: `$4::bigint AS cost, $5::bigint AS most, $6::bigint[] AS edges`,
	also: `CASE WHEN now < edges[1] THEN NULL WHEN now < edges[2] THEN edges[1] WHEN now < edges[3] THEN edges[2] WHEN now < edges[4] THEN edges[3] END AS first,
		CASE WHEN now < edges[1] THEN NULL WHEN now < edges[2] THEN edges[2] WHEN now < edges[3] THEN edges[3] WHEN now < edges[4] THEN edges[4] END AS after`,
	able:  `first IS NOT NULL`,
	words: 2,
	sound: inTime + ` AND WORDS[2] BETWEEN 0 AND most`,
	fresh: `ARRAY[first, cost]`,
	room:  `WORDS[1] < first OR WORDS[1] < after AND WORDS[2] <= most - cost`,
	next:  `CASE WHEN WORDS[1] < first THEN ARRAY[first, cost] ELSE ARRAY[first, WORDS[2] + cost] END`,
	life:  `after - now`,
}

// serverTime is now in µs. It is exact: a timestamp has no smaller parts, and fewer than 53 bits of them.
const serverTime = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`

// statement is a Take of $1 at $2, or now, from a record with the head $3. The time is read once. If the
// state that the statement sees has no room, it only reads. Otherwise it inserts, or locks the row and
// decides again on the state in it then. It returns the time, the new state if units were taken, the
// state that it saw first, and whether that has another head. A record with another head, and a value that
// is no state of the algorithm, have no room, and are left to the loop.
const statement = `
WITH clock AS MATERIALIZED (
	SELECT coalesce($2::bigint, ` + serverTime + `) AS now, GIVEN
), given AS MATERIALIZED (
	SELECT ALSO FROM clock
), found AS MATERIALIZED (
	SELECT words, head = $3::text AS ours FROM TABLE WHERE name = $1
), taken AS (
	INSERT INTO TABLE AS kept (name, head, words, expires)
	SELECT $1, $3::text, new, EXPIRES FROM given, LATERAL (SELECT FRESH AS new) AS step
	WHERE MAY AND coalesce((SELECT ours AND ROOM(found.words) FROM found), true)
	ON CONFLICT (name) DO UPDATE
	SET (words, expires) = (SELECT new, EXPIRES FROM given, LATERAL (SELECT NEXT(kept.words) AS new) AS step)
	WHERE kept.head = $3::text AND (SELECT MAY AND ROOM(kept.words) FROM given)
	RETURNING words
)
SELECT now, (SELECT words FROM taken), (SELECT words FROM found WHERE PLAIN), coalesce((SELECT NOT ours FROM found), false) FROM given`

// sql returns the statement for a table. With heals, a state that is too far ahead has no room. grace is an interval for
// which states are kept longer than they matter.
func (s *steps) sql(t table, heals bool, grace string) string {
	room, also := "("+s.room+")", "*"
	if heals && s.ahead != "" {
		room = "(NOT " + s.ahead + " AND " + room + ")"
	}
	room = fmt.Sprintf("(CASE WHEN array_ndims(WORDS) = 1 AND array_lower(WORDS, 1) = 1 AND cardinality(WORDS) = %d AND %s THEN %s ELSE false END)",
		s.words, s.sound, room)
	if s.also != "" {
		also += ", " + s.also
	}
	able := cmp.Or(s.able, "true")
	return strings.NewReplacer(
		"GIVEN", s.given, "MAY", able, "ALSO", also, "TABLE", string(t), "FRESH", s.fresh,
		"ROOM(found.words)", on("found.words", room), "ROOM(kept.words)", on("kept.words", room),
		"NEXT(kept.words)", on("kept.words", s.next), "PLAIN", on("words", plain),
		"EXPIRES", "clock_timestamp() + ("+s.life+") * interval '1 microsecond' + interval '"+grace+"'",
	).Replace(statement)
}
