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

package pictures

import (
	"math"
	"strconv"

	"github.com/synchub-dev/synchub/hack/chart"
)

// scaled is a unit, with its size in the smallest one.
type scaled struct {
	size float64
	name string
}

// units are Grafana's, the greatest first.
var units = map[string][]scaled{
	"s":     {{24 * 3600, " d"}, {3600, " h"}, {60, " min"}, {1, " s"}, {1e-3, " ms"}, {1e-6, " µs"}},
	"bytes": {{1 << 30, " GiB"}, {1 << 20, " MiB"}, {1 << 10, " KiB"}, {1, " B"}},
	"ops":   {{1e3, "K ops/s"}, {1, " ops/s"}},
	"reqps": {{1e3, "K req/s"}, {1, " req/s"}},
	"short": {{1e9, " Bil"}, {1e6, " Mil"}, {1e3, " K"}, {1, ""}},
	"":      {{1, ""}},
}

// format returns a value as Grafana writes it in a unit, with three digits.
func format(value float64, unit string) string {
	if unit == "bool_yes_no" {
		return map[bool]string{true: "Yes", false: "No"}[value != 0]
	}
	if value == 0 {
		return "0"
	}
	in := unitOf(value, unit)
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(value/in.size, 'g', 3, 64), 64) // it was a number
	return strconv.FormatFloat(rounded, 'f', -1, 64) + in.name
}

// unitOf returns the greatest unit in which a value is at least 1, or else the smallest one.
func unitOf(value float64, unit string) scaled {
	all := units[unit]
	for _, one := range all {
		if math.Abs(value) >= one.size {
			return one
		}
	}
	return all[len(all)-1]
}

// ticks returns round values from the least to the greatest one, at most six.
func ticks(least, greatest float64, unit string) (all []chart.Tick) {
	if greatest <= least {
		greatest = least + 1
	}
	size := unitOf(greatest, unit).size
	step := math.Pow(10, math.Floor(math.Log10((greatest-least)/size)))
	for _, factor := range []float64{0.2, 0.5, 1, 2, 5} {
		if (greatest-least)/size <= 4*factor*step {
			step *= factor
			break
		}
	}
	for n := math.Floor(least / size / step); ; n++ {
		value := n * step * size
		all = append(all, chart.Tick{Value: value, Label: format(value, unit)})
		if value >= greatest {
			return all
		}
	}
}
