/*
Copyright 2026 The synchub Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package main

import (
	"fmt"
	"math"
	"strconv"
)

// scaled is a larger unit, from its size in the smaller one.
type scaled struct {
	size float64
	name string
}

var (
	seconds = []scaled{{24 * 3600, " d"}, {3600, " h"}, {60, " min"}, {1, " s"}, {1e-3, " ms"}, {1e-6, " µs"}}
	sizes   = []scaled{{1 << 30, " GiB"}, {1 << 20, " MiB"}, {1 << 10, " KiB"}, {1, " B"}}
	numbers = []scaled{{1e9, " G"}, {1e6, " M"}, {1e3, " k"}}
)

// format writes a value as Grafana writes it in a unit.
func format(value float64, unit string) string {
	switch unit {
	case "s":
		return inLargest(value, seconds)
	case "bytes":
		return inLargest(value, sizes)
	case "ops":
		return inLargest(value, numbers) + " ops/s"
	case "bool_yes_no":
		if value != 0 {
			return "Yes"
		}
		return "No"
	default:
		return inLargest(value, numbers)
	}
}

func inLargest(value float64, units []scaled) string {
	if value == 0 {
		return "0"
	}
	unit := largest(value, units)
	return digits(value/unit.size) + unit.name
}

// largest returns the largest unit in which a value is at least 1.
func largest(value float64, units []scaled) scaled {
	for _, unit := range units {
		if math.Abs(value) >= unit.size {
			return unit
		}
	}
	return scaled{size: 1}
}

// unitSize returns the size of the unit in which format writes a value.
func unitSize(value float64, unit string) float64 {
	switch unit {
	case "s":
		return largest(value, seconds).size
	case "bytes":
		return largest(value, sizes).size
	default:
		return largest(value, numbers).size
	}
}

// digits writes three digits, or all before the point.
func digits(value float64) string {
	if math.Abs(value) >= 100 {
		return fmt.Sprintf("%.0f", value)
	}
	return strconv.FormatFloat(value, 'g', 3, 64)
}
