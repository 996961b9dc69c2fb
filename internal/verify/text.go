package verify

import "sluice.dev/sluice/internal/printable"

// maxPrintable is how many bytes of words from outside an error or a signer's name repeats.
const maxPrintable = 320

// printableLine makes words from outside one line of bounded length.
func printableLine(text string) string { return printable.Line(text, maxPrintable) }
