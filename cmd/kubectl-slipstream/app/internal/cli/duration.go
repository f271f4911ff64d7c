// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// day is a day of a duration, whatever the clocks do.
const day = 24 * time.Hour

// withDays matches a duration that begins with days. More digits would be more than a duration can be.
var withDays = regexp.MustCompile(`^([+-]?)(\d{1,5})d(.*)$`)

// ParseDuration parses a duration as time.ParseDuration does, which may begin with days, as in 7d or 1d12h.
func ParseDuration(text string) (time.Duration, error) {
	sign, days, rest := "", 0, text
	if found := withDays.FindStringSubmatch(text); found != nil {
		sign, rest = found[1], found[3]
		days, _ = strconv.Atoi(found[2]) // They are digits.
		if rest == "" {
			rest = "0"
		}
	}
	duration, err := time.ParseDuration(sign + rest)
	if err != nil || days > 0 && rest[0] == '-' {
		return 0, fmt.Errorf("%q is no duration: write it as in 90m, 24h or 7d", text)
	}
	if sign == "-" {
		return duration - time.Duration(days)*day, nil
	}
	return duration + time.Duration(days)*day, nil
}

// durationValue is the value of a flag.
type durationValue time.Duration

// Set implements pflag.Value.
func (d *durationValue) Set(text string) error {
	parsed, err := ParseDuration(text)
	*d = durationValue(parsed)
	return err
}

// String implements pflag.Value.
func (d *durationValue) String() string { return time.Duration(*d).String() }

// Type implements pflag.Value.
func (*durationValue) Type() string { return "duration" }

// DurationVar defines a flag that takes what ParseDuration does.
func DurationVar(flags *pflag.FlagSet, to *time.Duration, name string, value time.Duration, usage string) {
	*to = value
	flags.Var((*durationValue)(to), name, usage)
}
