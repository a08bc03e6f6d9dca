// Package identity says who is asking: the client's address, through trusted proxies only, or what a request tells of its sender, made into
// keys that no two different senders share.
//
// A [Source] is one such thing, as [Header], [Cookie] or [ClientIP.Network] make it. A [Key] is some of them together. Who counts by what a client can
// make up, such as a header, should know that it can: [First] falls back to the client's address for those who send nothing that was verified.
//
// What can't be had is no panic and no surprise at a request: a Source or a Key has an Err, which whoever is given one looks at.
package identity
