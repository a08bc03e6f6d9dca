// Package examples shows weir's middleware in net/http, chi, gin and echo. Each folder is a framework, and has an example to paste; the tests of this package hold
// all of them to the same.
//
// Who is counted is what httplimit.Options say, and not what a framework takes for the client's address: gin's TrustedProxies and echo's IPExtractor change
// nothing. Behind a proxy, set Options.ClientIP.
package examples
