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

package model

import "math"

// Memory is the memory of a replica in bytes, by what takes it.
type Memory struct {
	// Base is the process, connections and watches, without objects.
	Base float64
	// Mailboxes and Targets are what the caches of both sides take, with what the hub remembers of each object.
	Mailboxes, Targets float64
	// Garbage waits for its collection.
	Garbage float64
}

// Limit returns the least memory limit with which all of that fits: Go uses nine tenths of it.
func (m Memory) Limit() float64 { return (m.Base + m.Mailboxes + m.Targets + m.Garbage) / goPart }

// share is what a replica has of a fleet.
type share struct {
	targets float64
	// part is targets as a part of all, and held the part of the mailboxes whose objects the replica holds.
	part, held float64
}

func (f Fleet) shareOf(targets int, reading Reading) share {
	s := share{targets: float64(targets), part: float64(targets) / float64(f.Clusters)}
	s.held = s.part
	if reading == HoldAll {
		s.held = 1
	}
	return s
}

// memory returns what a replica needs for its share.
func (m Model) memory(f Fleet, s share) Memory {
	selected := float64(f.Objects) * f.Selected
	memory := Memory{
		Base: m.Process + s.targets*(m.Target+float64(f.Resources-1)*m.Pair) + (float64(f.Clusters)-s.targets)*2*m.Inventory,
		Mailboxes: s.held * (selected*m.mailboxObject(f.ObjectBytes) +
			(float64(f.Objects)-selected)*m.Unselected),
		Targets: s.part * selected * (m.Object - m.MailboxObject),
	}
	// A limit that is near makes Go collect more often, for processor time. As much garbage as objects costs little.
	memory.Garbage = memory.Mailboxes + memory.Targets
	return memory
}

// mailboxObject returns the memory of an object in the cache of its mailbox. The hub keeps no values of what is on targets, so
// a larger object takes more in the mailbox only.
func (m Model) mailboxObject(bytes float64) float64 {
	perByte := (m.Large/m.LargeCount - m.Object) / (LargeBytes - SampleBytes)
	return max(m.MailboxObject+(bytes-SampleBytes)*perByte, m.Unselected)
}

// cores returns the processors that a replica needs for its share while the fleet changes.
func (m Model) cores(f Fleet, s share, reading Reading) float64 {
	cores := m.IdleCores/m.IdleTargets*s.targets + s.part*f.changes()*m.Change
	if reading != WatchOwn {
		// Events of other mailboxes are decoded, and offered to nobody.
		cores += (1 - s.part) * f.changes() * m.Change * (m.Decode + m.Watch) / 100
	}
	return cores
}

// start returns how many seconds after its start a replica has reconciled all objects that it holds.
func (m Model) start(f Fleet, s share) float64 {
	perObject := (m.StartLarge - m.StartSmall) / (m.StartLargeObjects - m.StartSmallObjects)
	return m.StartSmall - perObject*m.StartSmallObjects + perObject*float64(f.Objects)*s.held
}

// Caches are the values for the limits of caches in bytes. Zero stands for the default, which is enough.
type Caches struct {
	Mailboxes, Targets float64
}

// caches returns the limits that a replica needs with a memory limit.
func (m Model) caches(need Memory, limit float64) Caches {
	above := func(need, given float64) float64 {
		need *= 1 + m.Assumptions.Margin
		if need <= given {
			return 0
		}
		return roundUp(need, mebi)
	}
	return Caches{
		Mailboxes: above(need.Mailboxes, limit*goPart*mailboxesPart),
		Targets:   above(need.Targets, limit*goPart*targetsPart),
	}
}

const mebi = 1 << 20

func roundUp(value, step float64) float64 { return math.Ceil(value/step) * step }
