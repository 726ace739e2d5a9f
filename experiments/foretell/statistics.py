"""What is computed from accuracies and scores, fixed before the first run.

Accuracy is a table (sources, targets), the mean over seeds; a method gives a score of the same shape, higher for sources
that it holds for better (a distance counts with a minus).

- **ρ**: Spearman's, among the sources of a target, averaged over targets. Targets differ in how hard they are, and no ranking of
  sources can see that; so pairs of different targets are never compared.
- **Interval**: 95 %, percentile, by a bootstrap over sources and targets at once, since both are samples. The same
  resamples serve all methods, so that differences between methods are paired.
- **p**: by shuffling the names of sources, the same for all targets; the share of shuffles with ρ at least as large.
- **Other bases**: ρ among the sources that share no base with the target.
- **Regret**: accuracy of the best source less that of the source with the highest score (the mean of those that tie), in
  points; **saved**: the part of the regret of a source at random that this avoids.
- **Partial ρ**: of ranks, given the ranks of the source's number of classes, number of points, and mean accuracy on the
  other targets: what a method knows beyond "this is a good source for anything".
- **Ceiling**: the ρ that the true order would have with the measured one: the square root of the reliability of accuracies, by
  halves of the seeds and Spearman-Brown.
- **Right labels first**: among sources of the same points, one with its labels and one with all of them shuffled: how
  often the first has the higher score.

The headline is "tuned whole, 10 examples a class"; the other three settings stand beside it. A setting of this package beats the default
where the difference in ρ is at least 0.05 and its interval has no 0, in two of three families.
"""
