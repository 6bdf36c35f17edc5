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

package spread

import (
	"fmt"
	"math/rand/v2"
	"strconv"
)

// podAlphabet has the characters from which Kubernetes makes the ends of names.
const podAlphabet = "bcdfghjklmnpqrstvwxz2456789"

// UIDs returns random UIDs of SyncTargets, which are the names of clusters for a coordinator.
func UIDs(random *rand.Rand, count int) []string {
	uids := make([]string, count)
	for i := range uids {
		high, low := random.Uint64(), random.Uint64()
		uids[i] = fmt.Sprintf("%08x-%04x-4%03x-%x%03x-%012x",
			high>>32, high>>16&0xffff, high&0xfff, 8+low>>62, low>>48&0xfff, low&0xffffffffffff)
	}
	return uids
}

// Names makes the names of replicas, which are the IDs of peers for a coordinator.
type Names func(random *rand.Rand, count int) []string

// DeploymentPods returns the names of the Pods of one ReplicaSet: they end with random characters.
func DeploymentPods(random *rand.Rand, count int) []string {
	names := make([]string, count)
	for i := range names {
		names[i] = "synchub-6d4cf56db6-" + ending(random)
	}
	return names
}

// StatefulSetPods returns the names of the Pods of a StatefulSet: they end with numbers.
func StatefulSetPods(_ *rand.Rand, count int) []string {
	names := make([]string, count)
	for i := range names {
		names[i] = "synchub-" + strconv.Itoa(i)
	}
	return names
}

func ending(random *rand.Rand) string {
	var ending [5]byte
	for i := range ending {
		ending[i] = podAlphabet[random.IntN(len(podAlphabet))]
	}
	return string(ending[:])
}
