// Tenants has a server and a trainer share a device in one process. The trainer
// grows until it fails; the server gets what it was guaranteed all the same, and a
// batch job borrows what the server leaves idle.
package main
