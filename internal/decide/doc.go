// Package decide decides requests against bound limits: with the store, or in place of a store that
// failed, as a [store.OnError] sets.
package decide
