// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncwindow

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // images have no time zone database

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	minDuration = time.Minute
	maxDuration = 31 * 24 * time.Hour
	// maxSchedule is the length of a schedule in bytes. Every minute, hour, day and month by number takes less.
	maxSchedule = 512
)

// compile compiles a window.
func compile(window Window, path *field.Path) (opening, field.ErrorList) {
	var errs field.ErrorList
	schedule, err := parseSchedule(window.Schedule)
	if err != nil {
		errs = append(errs, field.Invalid(path.Child("schedule"), window.Schedule, err.Error()))
	}
	zone, err := loadZone(window.TimeZone)
	if err != nil {
		errs = append(errs, field.Invalid(path.Child("timeZone"), window.TimeZone, err.Error()))
	}
	if window.Duration < minDuration || window.Duration > maxDuration {
		errs = append(errs, field.Invalid(path.Child("duration"), window.Duration.String(),
			fmt.Sprintf("must be at least 1m and at most %dh", int(maxDuration.Hours()))))
	}
	return opening{name: window.Name, schedule: schedule, duration: window.Duration, zone: zone}, errs
}

// parseSchedule parses a schedule as CronJobs do, without the forms that depend on anything but the wall clock.
func parseSchedule(text string) (cron.Schedule, error) {
	const hint = "such as 0 22 * * 1-5, or be @hourly, @daily, @weekly, @monthly or @yearly"
	switch {
	case len(text) > maxSchedule:
		return nil, fmt.Errorf("must have at most %d bytes", maxSchedule)
	case strings.Contains(text, "TZ="):
		return nil, fmt.Errorf("must not name a time zone, for which there is timeZone")
	case strings.HasPrefix(text, "@every"):
		return nil, fmt.Errorf("must not be @every, which counts from when a server starts: must have the five fields of cron, %s", hint)
	}
	schedule, err := cron.ParseStandard(text)
	if err != nil {
		return nil, fmt.Errorf("must have the five fields of cron, %s: %w", hint, err)
	}
	if schedule.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("must be a time that comes: no month has that day")
	}
	return schedule, nil
}

// loadZone loads a time zone. The machine's local zone is rejected, because servers would differ.
func loadZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || strings.EqualFold(name, "Local") {
		return nil, fmt.Errorf("must be a time zone by its name in the time zone database, such as Europe/Berlin or UTC")
	}
	return zone, nil
}
