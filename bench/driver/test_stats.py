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


class Waits(unittest.TestCase):
    def test_handovers_are_from_release_to_the_next_grant_in_the_order_of_grants(self) -> None:
        waits = [stats.Wait(1, 5, 130, 140), stats.Wait(0, 0, 100, 120), stats.Wait(2, 7), stats.Wait(0, 121, 145, 150)]
        self.assertEqual(stats.handovers(waits), [10, 5])
        self.assertEqual(stats.handovers(waits[:1]), [])

    def test_an_overlap_is_a_grant_before_any_earlier_holder_has_released(self) -> None:
        self.assertEqual(stats.overlaps([stats.Wait(0, 0, 100, 120), stats.Wait(1, 0, 120, 130)]), 0)
        self.assertEqual(
            stats.overlaps([stats.Wait(0, 0, 100, 200), stats.Wait(1, 0, 110, 120), stats.Wait(2, 0, 150, 160)]), 2
        )

    def test_nobody_is_passed_over_in_the_order_of_begins(self) -> None:
        self.assertEqual(stats.bypasses([stats.Wait(n, n, 100 + n, 101 + n) for n in range(5)]), 0)

    def test_each_grant_counts_once_that_goes_to_a_later_one_while_an_earlier_one_waits(self) -> None:
        last_first = [stats.Wait(n, n, 200 - n, 201 - n) for n in range(5)]
        self.assertEqual(stats.bypasses(last_first), 4)
        self.assertEqual(
            stats.bypasses([stats.Wait(0, 0, 300, 301), stats.Wait(1, 1, 100, 101), stats.Wait(2, 2, 200, 201)]), 2
        )

    def test_who_began_hardly_earlier_does_not_count(self) -> None:
        waits = [stats.Wait(0, 0, 300, 301), stats.Wait(1, 10, 100, 101), stats.Wait(2, 11, 200, 201)]
        self.assertEqual([stats.bypasses(waits, slack) for slack in (9, 10, 11)], [2, 1, 0])

    def test_who_is_never_served_is_passed_over_by_all_that_began_later(self) -> None:
        self.assertEqual(stats.bypasses([stats.Wait(0, 5), stats.Wait(1, 1, 100, 101), stats.Wait(2, 9, 200, 201)]), 1)

    def test_who_begins_after_a_grant_was_not_passed_over_by_it(self) -> None:
        self.assertEqual(
            stats.bypasses([stats.Wait(0, 0, 10, 20), stats.Wait(1, 15, 30, 40), stats.Wait(0, 21, 50, 60)]), 0
        )


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
