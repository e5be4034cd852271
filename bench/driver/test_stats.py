# Percentiles, medians, ratios of rounds, Jain's index, curves: against figures worked out by hand.
import unittest

from . import stats


class Percentile(unittest.TestCase):
    def test_is_a_sample_that_the_share_does_not_exceed(self) -> None:
        ordered = [float(number) for number in range(1, 101)]
        for share, expected in ((0.0, 1.0), (0.5, 50.0), (0.9, 90.0), (0.99, 99.0), (0.999, 100.0), (1.0, 100.0)):
            with self.subTest(share=share):
                self.assertEqual(stats.percentile(ordered, share), expected)

    def test_of_one_sample_is_that_sample(self) -> None:
        self.assertEqual(stats.percentile([7.0], 0.999), 7.0)

    def test_rank_does_not_slip_by_rounding(self) -> None:
        self.assertEqual(stats.percentile([float(number) for number in range(1, 1001)], 0.999), 999.0)
        self.assertEqual(stats.percentile([float(number) for number in range(1, 11)], 0.7), 7.0)

    def test_of_nothing_is_an_error(self) -> None:
        with self.assertRaises(ValueError):
            stats.percentile([], 0.5)


class Median(unittest.TestCase):
    def test_odd_and_even(self) -> None:
        self.assertEqual(stats.median([3.0, 1.0, 2.0]), 2.0)
        self.assertEqual(stats.median([4.0, 1.0, 2.0, 3.0]), 2.5)

    def test_spread_has_the_least_and_the_greatest(self) -> None:
        self.assertEqual(stats.spread([3.0, 1.0, 2.0]), stats.Spread(2.0, 1.0, 3.0, 3))
        self.assertIsNone(stats.spread([]))


class Ratios(unittest.TestCase):
    def test_compare_the_same_round_only(self) -> None:
        self.assertEqual(stats.ratios({0: 2.0, 1: 9.0, 3: 8.0}, {0: 1.0, 2: 5.0, 3: 4.0}), [2.0, 2.0])

    def test_a_zero_below_is_left_out(self) -> None:
        self.assertEqual(stats.ratios({0: 2.0, 1: 3.0}, {0: 0.0, 1: 3.0}), [1.0])

    def test_a_noisy_round_that_hit_both_does_not_show(self) -> None:
        ours, floor = {0: 110.0, 1: 1100.0, 2: 110.0}, {0: 100.0, 1: 1000.0, 2: 100.0}
        found = stats.spread(stats.ratios(ours, floor))
        assert found
        self.assertAlmostEqual(found.median, 1.1)
        self.assertAlmostEqual(found.high, 1.1)


class Jain(unittest.TestCase):
    def test_from_one_to_one_in_n(self) -> None:
        self.assertEqual(stats.jain([5, 5, 5, 5]), 1.0)
        self.assertEqual(stats.jain([20, 0, 0, 0]), 0.25)
        self.assertIsNone(stats.jain([0, 0]))


class Curve(unittest.TestCase):
    def test_rises_and_ends_where_ten_samples_are_left(self) -> None:
        points = stats.curve([float(number) for number in range(1, 1001)])
        self.assertEqual(points, sorted(points))
        self.assertAlmostEqual(points[-1][0], 0.99)
        self.assertEqual(points[0], (0.0, 1.0))

    def test_of_nothing_is_empty(self) -> None:
        self.assertEqual(stats.curve([]), [])


if __name__ == "__main__":
    unittest.main()
