package configs

import "strings"

// nearest is the candidate that was probably meant by word: the one with the fewest
// edits, if these are few for its length (one in a word of three, three in a long one). Empty when none is near.
func nearest(word string, candidates []string) string {
	word = strings.ToLower(word)
	best, least := "", min(3, max(1, len(word)/2))+1
	for _, c := range candidates {
		if d := distance(word, strings.ToLower(c)); d < least {
			best, least = c, d
		}
	}
	return best
}

// distance is the number of inserted, dropped and changed letters between a and b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
